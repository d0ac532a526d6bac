// Small helps for the pages: countdowns and ages, the login link, a log that stays at its end, a session that is over.
// Everything works without it, but for what is live.
"use strict";
(() => {
  const zh = document.documentElement.lang === "zh";
  const units = zh ? [" 天", " 小时", " 分钟", " 秒"] : [" d", " h", " min", " s"];
  const two = (n) => String(n).padStart(2, "0");

  // As states/words/wording.duration does.
  function duration(seconds) {
    const whole = Math.max(Math.round(seconds), 0);
    const minutes = Math.floor(whole / 60), hours = Math.floor(whole / 3600), days = Math.floor(whole / 86400);
    if (whole < 60) return whole + units[3];
    if (whole < 600 && whole % 60) return minutes + units[2] + " " + two(whole % 60) + units[3];
    if (whole < 3600) return minutes + units[2];
    if (whole < 86400) return hours + units[1] + " " + two(minutes % 60) + units[2];
    return days + units[0] + " " + two(hours % 24) + units[1];
  }

  function tick() {
    const now = Date.now();
    for (const time of document.querySelectorAll("time[data-until]"))
      time.textContent = duration((Date.parse(time.dateTime) - now) / 1000);
    for (const time of document.querySelectorAll("time[data-since]")) {
      const age = duration((now - Date.parse(time.dateTime)) / 1000);
      time.textContent = zh ? age + "前" : age + " ago";
    }
  }
  setInterval(tick, 1000);

  // A login link carries its token behind the #, which is sent to no server; it leaves the address at once.
  const login = document.getElementById("login");
  function comeIn() {
    if (!login || location.hash.length < 2) return;
    login.elements.token.value = decodeURIComponent(location.hash.slice(1));
    history.replaceState(null, "", location.pathname);
    login.requestSubmit();
  }
  addEventListener("hashchange", comeIn);
  comeIn();

  // A log stays at its end while the reader is there.
  let atEnd = true;
  const isLog = (node) => node instanceof Element && node.id === "lines";
  document.addEventListener("scroll", (event) => {
    if (isLog(event.target))
      atEnd = event.target.scrollHeight - event.target.scrollTop - event.target.clientHeight < 40;
  }, true);
  new MutationObserver(() => {
    const log = document.getElementById("lines");
    const none = document.getElementById("no-log");
    if (log && log.children.length && none) none.remove();
    if (log && atEnd) log.scrollTop = log.scrollHeight;
  }).observe(document.getElementById("content"), { childList: true, subtree: true });

  // The bell: a session that is over leads to the door; a lost connection is said.
  const behind = document.getElementById("behind");
  document.addEventListener("htmx:sse:error", (event) => {
    if (event.detail.status === 401) location.reload();
    else behind.hidden = false;
  });
  document.addEventListener("htmx:sse:after:connection", () => { behind.hidden = true; });

  // What was found stands below the form: it is led to.
  const findings = document.getElementById("findings");
  if (findings) findings.focus();
})();
