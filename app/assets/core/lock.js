// Sizes of a mesh that keep the number of GPUs: which other size follows from one that is set.

const AXES = ["dp", "pp", "cp", "tp"];

export function worldOf({ tp, cp, dp, pp }) {
  return tp * cp * dp * pp;
}

// `sizes` are { tp, cp, dp, pp, ep, etp, replica }, `ep` 0 where no experts are spread. Gives `changes`, the
// sizes that follow, and `said`, why; or `choices`, values that would work, where nothing can follow.
export function keepGpus(sizes, axis, value) {
  const world = worldOf(sizes);
  const next = { ...sizes, [axis]: value };
  const follower = AXES.find((other) => other !== axis && world % (worldOf(next) / next[other]) === 0);
  if (!follower) return { choices: choicesOf(sizes, axis) };
  next[follower] = (world * next[follower]) / worldOf(next);
  const said = [];
  if (next[follower] !== sizes[follower]) {
    said.push(step(follower, sizes, next) + " keeps " + world.toLocaleString("en") + " GPUs");
  }
  const stage = world / next.pp;
  if (next.ep && stage % (next.ep * next.etp)) {
    next.ep = largestDivisor(stage / next.etp, next.ep);
    said.push(step("ep", sizes, next) + ": a stage has " + stage.toLocaleString("en") + " GPUs");
  }
  if (next.replica >= next.dp) {
    next.replica = next.dp - 1;
    said.push("replica " + sizes.replica + " → " + next.replica + ": there are " + next.dp);
  }
  const changes = Object.fromEntries(Object.entries(next).filter(([key, size]) => size !== sizes[key]));
  return { changes, said: said.join("; ") };
}

function step(axis, before, after) {
  return axis.toUpperCase() + " " + before[axis] + " → " + after[axis];
}

// Values of an axis with which the first axis that may follow comes out whole.
function choicesOf(sizes, axis) {
  const follower = AXES.find((other) => other !== axis);
  const room = sizes[axis] * sizes[follower];
  return divisors(room);
}

function divisors(number) {
  return Array.from({ length: number }, (_, i) => i + 1).filter((each) => number % each === 0);
}

function largestDivisor(number, most) {
  for (let each = Math.min(most, Math.floor(number)); each > 1; each--) if (number % each === 0) return each;
  return 1;
}
