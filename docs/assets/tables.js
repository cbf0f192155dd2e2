// A table that is wider than the page is scrolled: with the keys too.
document$.subscribe(() => {
  requestAnimationFrame(() => {
    for (const frame of document.querySelectorAll(".md-typeset__scrollwrap")) if (frame.scrollWidth > frame.clientWidth) frame.tabIndex = 0;
  });
});
