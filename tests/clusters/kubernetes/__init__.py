"""An API server to test against, over real HTTP, with a Job controller, a scheduler and a kubelet behind it."""
