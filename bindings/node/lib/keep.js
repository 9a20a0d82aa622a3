'use strict';

/** The longest time of a timer, in milliseconds. */
const FOREVER = 2 ** 31 - 1;

/** Keeps the event loop alive while answers are due. */
const keeper = setInterval(() => {}, FOREVER).unref();
let due = 0;

/** Keeps the event loop alive until `release` is called as often. */
function hold() {
  if (due === 0) keeper.ref();
  due += 1;
}

function release() {
  due -= 1;
  if (due === 0) keeper.unref();
}

module.exports = { hold, release };
