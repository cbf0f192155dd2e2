const TYPING = 1500; // Milliseconds after a digit until the number counts as typed.

/** A number of two digits at most as it is typed: `shown(text)` hears of each digit, `arrived(number)` of its end. */
export function typedNumber({ shown, arrived }) {
  let [typed, timer] = ["", 0];
  const finish = () => {
    const number = Number(typed);
    clearTimeout(timer);
    typed = "";
    arrived(number);
  };
  const digit = (one) => {
    typed = (typed + one).slice(-2);
    shown(typed);
    clearTimeout(timer);
    timer = setTimeout(finish, TYPING);
  };
  return { digit, finish, begun: () => Boolean(typed), stop: () => clearTimeout(timer) };
}
