"""Who could do harm and what keeps them from it (docs/threat-model.md): each promise of that page has a test here."""
