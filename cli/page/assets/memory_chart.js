// Device memory over the step: stacked areas with exact steps. A column of the chart is one pixel wide and shows the
// highest moment within it.

const kMargin = {left: 72, right: 12};
const kMostSeries = 9;
const kDashes = ['5 3', '2 3', '8 3 2 3'];  // of other traces, in turn

// Groups that the chart stacks, bottom first, and the group of each life.
function groupLives(run, by) {
  const groups = [];
  const put = (name, color, base = 0) => groups.push({name, color: `var(${color})`, base}) - 1;
  for (const [key, name, color] of run.residents()) put(name, color, run.resident_bytes[key]);
  const residents = groups.length;
  const keyOf = {
    kind: (life) => kKinds[run.lives.kind[life]][1],
    op: (life) => run.lifeOp(life),
    module: (life) => foldedModule(run.module(run.lives.module[life])),
    line: (life) => run.name(run.lives.line[life]) || '(no line)',
  }[by];
  const count = run.lives.bytes.length;
  const keys = Array.from({length: count}, (_, life) => keyOf(life));
  const numbers = new Map();
  if (by === 'kind') {
    const present = new Set(keys);
    for (const kind of [0, 1, 2, 3, 5, 4, 6, 7]) {
      const [color, name] = kKinds[kind];
      if (present.has(name)) numbers.set(name, put(name, '--' + color));
    }
  } else {
    for (const [rank, key] of rankedKeys(run, keys).entries()) {
      if (rank < kMostSeries) numbers.set(key, put(key, '--series-' + rank));
      else numbers.set(key, rank === kMostSeries ? put('all others', '--series-9') : groups.length - 1);
    }
  }
  return {groups, residents, of: Int32Array.from(keys, (key) => numbers.get(key))};
}

// Keys by bytes at the peak, then by all their bytes.
function rankedKeys(run, keys) {
  const atPeak = new Map(), all = new Map();
  const live = run.liveAfter(run.peakChange);
  keys.forEach((key, life) => {
    all.set(key, (all.get(key) || 0) + run.lives.bytes[life]);
    if (live.has(life)) atPeak.set(key, (atPeak.get(key) || 0) + run.lives.bytes[life]);
  });
  return [...all.keys()].sort((a, b) => (atPeak.get(b) || 0) - (atPeak.get(a) || 0) || all.get(b) - all.get(a));
}

// The composition of memory in each of `count` columns at its highest moment, between two times.
function binMemory(run, grouping, [begin, end], count) {
  const size = grouping.groups.length;
  const current = Float64Array.from(grouping.groups, (group) => group.base);
  let total = current.reduce((sum, bytes) => sum + bytes, 0), change = 0;
  const columns = {total: new Float64Array(count), change: new Int32Array(count), parts: new Float64Array(count * size)};
  const take = (column) => {
    columns.total[column] = total;
    columns.change[column] = change - 1;
    columns.parts.set(current, column * size);
  };
  const apply = () => {
    const life = run.changeLives[change], delta = run.delta(change);
    current[grouping.of[life >= 0 ? life : ~life]] += delta;
    total += delta;
    ++change;
  };
  const {changeTimes} = run;
  while (change < changeTimes.length && changeTimes[change] < begin) apply();
  for (let column = 0; column < count; ++column) {
    const until = column + 1 === count ? end : begin + (column + 1) * (end - begin) / count;
    take(column);
    while (change < changeTimes.length && (changeTimes[change] < until || until === end && changeTimes[change] === end)) {
      apply();
      if (total > columns.total[column]) take(column);
    }
  }
  return columns;
}

class MemoryChart {
  constructor(page) {
    this.page = page;
    // A memory snapshot does not know kinds.
    this.by = page.runs.every((run) => run.is_memory_snapshot) ? 'op' : 'kind';
    this.svg = byId('memory-chart');
    this.svg.onpointermove = (event) => this.hover(event);
    this.svg.onpointerleave = hideTooltip;
    this.hidesResidents = page.runs.some((run) => run.always_live_bytes > run.peakBytes / 2);
    this.showsCache = true;
    this.showsOthers = true;
    this.addControls();
    byId('memory-section').hidden = false;
  }

  addControls() {
    const controls = byId('memory-controls');
    const choices = [['kind', 'by kind'], ['op', 'by operator'], ['module', 'by module']];
    if (this.page.runs.some((run) => run.lives.line.some((line) => line >= 0))) choices.push(['line', 'by source line']);
    addChoice(controls, 'stack by', choices, this.by, (by) => { this.by = by; this.draw(); });
    addCheckbox(controls, 'leave out what is always there', this.hidesResidents, (on) => {
      this.hidesResidents = on;
      this.draw();
    }).id = 'hide-residents';
    if (this.page.runs.some((run) => run.reservedTimes.length)) {
      addCheckbox(controls, "allocator's cache", true, (on) => { this.showsCache = on; this.draw(); });
    }
    if (this.page.runs.length > 1) {
      addCheckbox(controls, 'other traces as lines', true, (on) => { this.showsOthers = on; this.draw(); });
    }
  }

  draw() {
    const {run, view} = this.page;
    const height = Math.round(Math.min(420, Math.max(280, innerWidth * 0.25)));
    const width = beginChart(this.svg, height);
    this.plot = {left: kMargin.left, right: width - kMargin.right, top: 20, bottom: height - 22};
    const count = Math.max(2, Math.floor(this.plot.right - this.plot.left));
    this.grouping = groupLives(run, this.by);
    this.columns = binMemory(run, this.grouping, view, count);
    this.shownColumns = this.columnsOf(run, count);
    this.others = this.showsOthers ? this.page.runs.filter((other) => other !== run) : [];
    this.otherColumns = this.others.map((other) =>
        binMemory(other, {groups: [{base: other.always_live_bytes}], of: new Int32Array(other.lives.bytes.length)}, view,
                  count).total);
    this.reserved = this.reservedColumns(count);
    this.setScale();
    this.drawAxis();
    this.drawReserved();
    this.drawAreas();
    this.drawOthers();
    this.drawMarks();
    this.drawLegend();
    this.writeCaption();
  }

  // Of `count` columns of the chart, those in which the step of a run is.
  columnsOf(run, count) {
    const [begin, end] = this.page.view;
    return Math.min(count, Math.max(0, Math.ceil((run.stepNs - begin) / (end - begin) * count)));
  }

  reservedColumns(count) {
    const {run, view: [begin, end]} = this.page;
    if (!this.showsCache || !run.reservedTimes.length) return null;
    const columns = new Float64Array(count);
    const width = (end - begin) / count;
    return columns.map((_, column) => run.reservedAt(begin + (column + 1) * width));
  }

  setScale() {
    const {groups, residents} = this.grouping;
    this.low = this.hidesResidents ? groups.slice(0, residents).reduce((sum, group) => sum + group.base, 0) : 0;
    let high = Math.max(...this.columns.total, this.page.pickedPeak || 0);
    for (const columns of this.otherColumns) high = Math.max(high, ...columns);
    if (this.reserved) high = Math.max(high, ...this.reserved);
    this.high = this.low + Math.max(1, high - this.low) * 1.05;
  }

  y(bytes) {
    const {top, bottom} = this.plot;
    return bottom - (Math.max(this.low, bytes) - this.low) / (this.high - this.low) * (bottom - top);
  }

  x(ns) {
    const {left, right} = this.plot, [begin, end] = this.page.view;
    return left + (ns - begin) / (end - begin) * (right - left);
  }

  // The steps along the values of all columns, as the data of a path that begins with `start`.
  steps(values, start = 'M', forward = true) {
    const {left} = this.plot, count = values.length;
    let data = '';
    for (let i = 0; i < count;) {
      let next = i + 1;
      const value = values[forward ? i : count - 1 - i];
      while (next < count && values[forward ? next : count - 1 - next] === value) ++next;
      const height = this.y(value).toFixed(1);
      data += i === 0 ? `${start}${forward ? left : left + count},${height}` : `V${height}`;
      data += `H${forward ? left + next : left + count - next}`;
      i = next;
    }
    return data;
  }

  drawAxis() {
    const {left, right} = this.plot;
    for (const bytes of ticks(this.low, this.high, 8, 2)) {
      add(this.svg, 'line', {x1: left, x2: right, y1: this.y(bytes), y2: this.y(bytes), class: 'grid'});
      add(this.svg, 'text', {x: left - 7, y: this.y(bytes) + 4, 'text-anchor': 'end'}, bytesText(bytes));
    }
  }

  drawReserved() {
    if (!this.reserved || !this.shownColumns) return;
    const reserved = this.reserved.slice(0, this.shownColumns), total = this.columns.total.slice(0, this.shownColumns);
    add(this.svg, 'path', {d: this.steps(reserved) + this.steps(total, 'L', false) + 'Z', fill: 'var(--cache)'});
    add(this.svg, 'path', {d: this.steps(reserved), fill: 'none', stroke: 'var(--faint)'});
  }

  drawAreas() {
    const {groups, residents} = this.grouping, {parts} = this.columns;
    let lower = new Float64Array(this.shownColumns);
    this.tops = groups.map((group, number) => {
      const upper = lower.map((bytes, column) => bytes + parts[column * groups.length + number]);
      if (lower.length && !(this.hidesResidents && number < residents)) {
        add(this.svg, 'path', {d: this.steps(upper) + this.steps(lower, 'L', false) + 'Z', fill: group.color});
      }
      return lower = upper;
    });
  }

  drawOthers() {
    this.otherColumns.forEach((columns, i) => {
      const until = this.columnsOf(this.others[i], columns.length);
      if (!until) return;
      add(this.svg, 'path', {d: this.steps(columns.slice(0, until)), fill: 'none', stroke: 'var(--ink)', 'stroke-width': 1.3,
                             'stroke-dasharray': kDashes[i % kDashes.length]});
    });
  }

  drawMarks() {
    const {run} = this.page, {left, right, top, bottom} = this.plot;
    for (const phase of run.phases) {
      const begin = Math.max(left, this.x(phase.begin_ns)), end = Math.min(right, this.x(phase.end_ns));
      if (end - begin < 2) continue;
      add(this.svg, 'line', {x1: begin, x2: begin, y1: top, y2: bottom + 4, class: 'axis'});
      const text = fitted(phase.name, end - begin);
      if (text) add(this.svg, 'text', {x: (begin + end) / 2, y: bottom + 15, 'text-anchor': 'middle'}, text);
    }
    add(this.svg, 'line', {x1: left, x2: right, y1: bottom, y2: bottom, class: 'axis'});
    this.drawPeak();
    if (this.page.pickedPeak) {
      const y = this.y(this.page.pickedPeak);
      add(this.svg, 'line', {x1: left, x2: right, y1: y, y2: y, stroke: 'var(--accent)', 'stroke-dasharray': '2 3'});
      add(this.svg, 'text', {id: 'picked-peak', x: left + 6, y: y - 4, class: 'strong'},
          'peak of the chosen policy: ' + bytesText(this.page.pickedPeak));
    }
  }

  drawPeak() {
    const {run, view: [begin, end]} = this.page, {left, right, top, bottom} = this.plot;
    if (run.peakNs < begin || run.peakNs > end) return;
    const x = this.x(run.peakNs), y = this.y(run.peakBytes), isRight = x > (left + right) / 2;
    add(this.svg, 'line', {x1: x, x2: x, y1: top - 4, y2: bottom, stroke: 'var(--ink)', opacity: 0.45});
    add(this.svg, 'circle', {cx: x, cy: y, r: 3.2, fill: 'var(--ink)'});
    add(this.svg, 'text', {x: x + (isRight ? -6 : 6), y: 11, 'text-anchor': isRight ? 'end' : 'start', class: 'strong'},
        `peak ${bytesText(run.peakBytes)}: ${run.peakText()}`);
  }

  drawLegend() {
    const legend = byId('memory-legend'), {run} = this.page, {groups, of} = this.grouping;
    const atPeak = Float64Array.from(groups, (group) => group.base);
    for (const life of run.liveAfter(run.peakChange)) atPeak[of[life]] += run.lives.bytes[life];
    legend.replaceChildren();
    groups.forEach((group, number) =>
        addLegendEntry(legend, group.color, group.name, atPeak[number] ? bytesText(atPeak[number]) : '', 'bytes at the peak'));
    if (this.reserved) addLegendEntry(legend, 'var(--cache)', "reserved by the allocator, unused", '');
    this.others.forEach((other, i) => addLineEntry(legend, kDashes[i % kDashes.length], other.label));
  }

  writeCaption() {
    const {run} = this.page;
    this.svg.dataset.peakBytes = run.peakBytes;
    const hidden = this.hidesResidents ? ` The axis begins at ${bytesText(this.low)}, which are always there.` : '';
    byId('memory-caption').textContent =
        `${run.label}: requested bytes, replayed allocation by allocation; the legend has the figures at the peak. ` +
        `A column shows its highest moment.${hidden} Drag to zoom, double-click to see the whole step.`;
  }

  hover(event) {
    const {x, y} = pointIn(this.svg, event), {left, right, top, bottom} = this.plot;
    if (event.buttons || x < left || x >= right || y < top - 12 || y > bottom) return hideTooltip();
    const column = Math.floor(x - left);
    if (column >= this.shownColumns) return hideTooltip();
    const bytes = this.low + (bottom - y) / (bottom - top) * (this.high - this.low);
    const hit = this.tops.findIndex((tops) => bytes < tops[column]);
    showTooltip(event, (tooltip) => this.describe(tooltip, column, hit));
  }

  describe(tooltip, column, hit) {
    const {run, view: [begin, end]} = this.page, {groups, residents} = this.grouping;
    const change = this.columns.change[column];
    const columnBegin = begin + column / this.columns.total.length * (end - begin);
    const at = Math.max(columnBegin, change >= 0 ? run.changeTimes[change] : 0);
    add(tooltip, 'div', {class: 'title'}, `${bytesText(this.columns.total[column])} at ${timeText(at)}`);
    describeOp(tooltip, run, run.opAt(at));
    const table = add(add(tooltip, 'table'), 'tbody');
    for (let number = groups.length - 1; number >= 0; --number) {
      const bytes = this.columns.parts[column * groups.length + number];
      if (bytes <= 0) continue;
      const row = add(table, 'tr'), name = add(row, 'td');
      addSwatch(name, groups[number].color);
      name.append(groups[number].name);
      if (number === hit) name.className = 'title';
      add(row, 'td', {class: 'number'}, bytesText(bytes));
    }
    if (hit >= residents) this.describeLargest(tooltip, change, hit);
  }

  describeLargest(tooltip, change, hit) {
    const {run} = this.page, {lives} = run;
    const members = [...run.liveAfter(change)].filter((life) => this.grouping.of[life] === hit)
                                              .sort((a, b) => lives.bytes[b] - lives.bytes[a]);
    if (!members.length) return;
    add(tooltip, 'div', {class: 'faint'}, `largest of ${members.length} in ${this.grouping.groups[hit].name}:`);
    const table = add(add(tooltip, 'table'), 'tbody');
    for (const life of members.slice(0, 5)) {
      const row = add(table, 'tr');
      add(row, 'td', {class: 'number'}, bytesText(lives.bytes[life]));
      const place = [run.lifeOp(life), run.name(lives.module[life]), run.name(lives.line[life])];
      add(row, 'td', {class: 'code'}, place.filter(Boolean).join('  '));
    }
  }
}

// Names the operator that runs, its module and its source line.
function describeOp(tooltip, run, op) {
  if (op < 0) return;
  const {ops} = run;
  add(tooltip, 'div', {}, 'in ' + shortOp(run.name(ops.op[op])));
  const place = [run.name(ops.module[op]), run.name(ops.line[op])].filter(Boolean).join('  ');
  if (place) add(tooltip, 'div', {class: 'faint code'}, place);
}
