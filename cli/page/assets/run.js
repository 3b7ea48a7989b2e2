// A run: the columns of the file as one replayed step.

const kKinds = [
  ['resident', 'older than the step, freed in it'], ['parameters', 'parameters, gathered or loaded'], ['gradient', 'gradients'],
  ['saved', 'saved tensors'], ['restored', 'saved tensors, back on the device'], ['encoded', 'saved tensors, encoded'],
  ['temporary', 'temporaries'], ['optimizer', "optimizer's temporaries"],
];
const kSavedKinds = new Set([3, 4, 5]);
const kResidents = [
  ['parameters', 'weights', '--parameters'], ['other', 'optimizer state, workspaces', '--other-resident'],
  ['buffers', 'buffers', '--inputs'], ['inputs', 'inputs', '--inputs'],
];

async function readData() {
  const bytes = Uint8Array.from(atob(byId('data').textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(stream).text());
}

function summed(deltas) {
  let sum = 0;
  return Float64Array.from(deltas, (delta) => sum += delta);
}

const shortOp = (name) => name.replace(/^aten::/, '');
const foldedModule = (path) => path.replace(/\d+/g, '*');

class Run {
  constructor(columns) {
    Object.assign(this, columns);
    this.changeTimes = summed(columns.changes.at_ns);
    let begun = 0;
    // The life that begins, or ~life that ends.
    this.changeLives = Int32Array.from(columns.changes.life, (life) => life < 0 ? begun++ : ~life);
    this.opTimes = summed(columns.ops.begin_ns);
    this.copyTimes = summed(columns.copies.begin_ns);
    this.stallTimes = summed(columns.stalls.begin_ns);
    this.reservedTimes = summed(columns.reserved.at_ns);
    this.stepNs = columns.predicted.step_time_ns;
    this.findPeak();
  }

  // Key, name and color of each kind of memory that the step does not free.
  residents() {
    if (this.is_memory_snapshot) return [['other', 'older than the history', '--other-resident']];
    return kResidents.filter(([key]) => this.resident_bytes[key] > 0);
  }

  name(index) { return index < 0 ? '' : this.names[index]; }
  module(index) { return this.name(index) || '(no module)'; }

  // Change of the live bytes that a change of the list makes.
  delta(change) {
    const life = this.changeLives[change];
    return life >= 0 ? this.lives.bytes[life] : -this.lives.bytes[~life];
  }

  findPeak() {
    let live = this.always_live_bytes;
    this.peakBytes = live;
    this.peakChange = -1;
    for (let i = 0; i < this.changeLives.length; ++i) {
      live += this.delta(i);
      if (live > this.peakBytes) [this.peakBytes, this.peakChange] = [live, i];
    }
    this.peakNs = this.peakChange < 0 ? 0 : this.changeTimes[this.peakChange];
  }

  // The lives after a change, as a set of their numbers.
  liveAfter(change) {
    const live = new Set();
    for (let i = 0; i <= change; ++i) {
      const life = this.changeLives[i];
      if (life >= 0) live.add(life);
      else live.delete(~life);
    }
    return live;
  }

  // The last change at or before a time; -1: none.
  changeAt(ns) {
    let low = 0, high = this.changeTimes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.changeTimes[middle] <= ns) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  // The outermost operator that runs at a time; -1: none.
  opAt(ns) {
    let low = 0, high = this.opTimes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.opTimes[middle] <= ns) low = middle + 1;
      else high = middle;
    }
    const op = low - 1;
    return op >= 0 && this.opTimes[op] + this.ops.duration_ns[op] >= ns ? op : -1;
  }

  reservedAt(ns) {
    let bytes = 0;
    for (let i = 0; i < this.reservedTimes.length && this.reservedTimes[i] <= ns; ++i) bytes = this.reserved.bytes[i];
    return bytes;
  }

  // The operator that saved the tensor of a life, or made the life.
  lifeOp(life) {
    const tensor = this.lives.tensor[life];
    return shortOp(this.name(tensor >= 0 ? this.saved.op[tensor] : this.lives.op[life])) || '(no operator)';
  }

  tensorText(tensor) {
    const saved = this.saved;
    return `#${tensor} ${shortOp(this.name(saved.op[tensor]))} ${saved.layout[tensor]} ` +
        `${bytesText(saved.bytes[tensor])} ${this.name(saved.module[tensor])}`;
  }

  peakText() {
    const {phase, op} = this.peak_place;
    return [phase, op && 'in ' + shortOp(op)].filter(Boolean).join(', ');
  }

  // Bytes of each group at the peak: residents by owner, then the lives by kind.
  peakContent() {
    const content = new Map();
    const put = (name, bytes) => bytes && content.set(name, (content.get(name) || 0) + bytes);
    for (const [key, name] of this.residents()) put(name, this.resident_bytes[key]);
    for (const life of this.liveAfter(this.peakChange)) put(kKinds[this.lives.kind[life]][1], this.lives.bytes[life]);
    return content;
  }
}
