// What the theme leaves without a name or out of reach of the keys, whenever it puts it on the page.
function mend() {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll(".md-code__nav").forEach((nav, at) => nav.setAttribute("aria-label", `Code ${at + 1}`));
  for (const frame of document.querySelectorAll(".md-typeset__scrollwrap")) {
    if (frame.scrollWidth > frame.clientWidth) frame.tabIndex = 0;
  }
}

new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
mend();
