const AFTER = 2500; // Milliseconds.

/** Mark the page as at rest while nobody moves the mouse or touches the screen: its buttons are then not shown. */
export function rest(main) {
  let timer = 0;
  const sleep = () => main.classList.add("resting");
  const wake = () => {
    main.classList.remove("resting");
    clearTimeout(timer);
    timer = setTimeout(sleep, AFTER);
  };
  for (const name of ["pointermove", "pointerdown"]) addEventListener(name, wake);
  sleep();
}
