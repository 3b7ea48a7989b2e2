// Timeline of computation, stalls and copies, on the axis of the memory chart.

const kStallReasons = [
  ['stash full, copy out not done', '--stall-out'], ['stash emptied, copy out not done', '--stall-out'],
  ['no stash, copy out not done', '--stall-out'], ['released before its copy out was done', '--stall-released'],
  ['reload requested too late', '--stall-in'], ['link busy with earlier copies', '--stall-link'],
  ['parameters still being copied', '--stall-other'], ['host had not launched the next kernel', '--stall-launch'],
  ['disk transfer not done', '--stall-other'],
];
const kPhaseColors = {forward: '--forward', backward: '--backward', optimizer: '--optimizer-phase'};
// Tracks of copies by their number in the file.
const kCopyTracks = new Map([[1, ['to host', '--to-host']], [2, ['from host', '--from-host']],
                             [4, ['disk write', '--disk-write']], [5, ['disk read', '--disk-read']]]);
const kRowHeight = 18, kRowGap = 5;

class Timeline {
  constructor(page) {
    this.page = page;
    this.svg = byId('timeline');
    this.svg.onpointermove = (event) => this.hover(event);
    this.svg.onpointerleave = hideTooltip;
  }

  // Rows of spans: begin, end, colour, text, and a function that describes the span.
  makeRows() {
    const {run} = this.page, rows = [];
    const put = (name, spans) => spans.length && rows.push({name, spans});
    put('module', this.moduleSpans());
    put('compute', this.opSpans());
    put('stalls', Array.from(run.stallTimes, (begin, i) => {
      const [reason, color] = kStallReasons[run.stalls.reason[i]], tensor = run.stalls.tensor[i];
      return {begin, end: begin + run.stalls.duration_ns[i], color, text: '', title: reason,
              details: tensor < 0 ? [] : [run.tensorText(tensor)]};
    }));
    for (const [track, [name, color]] of kCopyTracks) put(name, this.copySpans(track, color));
    return rows;
  }

  // Spans in which operators compute: the stalls within an operator are left out.
  opSpans() {
    const {run} = this.page, {ops, stallTimes, stalls} = run, spans = [];
    let stall = 0;
    run.opTimes.forEach((begin, i) => {
      const end = begin + ops.duration_ns[i], name = run.name(ops.op[i]);
      const color = kPhaseColors[run.name(ops.phase[i])] || '--other-phase';
      const details = [run.name(ops.module[i]), run.name(ops.line[i])].filter(Boolean);
      const put = (from, to) => {
        if (to > from) spans.push({begin: from, end: to, color, text: shortOp(name), title: name, details});
      };
      let from = begin;
      for (; stall < stallTimes.length && stallTimes[stall] < end; ++stall) {
        const stallEnd = stallTimes[stall] + stalls.duration_ns[stall];
        put(from, stallTimes[stall]);
        from = Math.max(from, stallEnd);
        if (stallEnd > end) break;
      }
      put(from, end);
    });
    return spans;
  }

  // Neighbouring operators of the same module, without the parts of the path below the repeated one.
  moduleSpans() {
    const {run} = this.page, {ops} = run, spans = [];
    Array.from(run.opTimes, (begin, i) => {
      if (ops.module[i] < 0) return;
      const path = run.name(ops.module[i]), title = (/^.*?\d+(?=\.|$)/.exec(path) || [path.split('.')[0]])[0];
      const end = begin + ops.duration_ns[i], last = spans[spans.length - 1];
      if (last && last.title === title) last.end = end;
      else spans.push({begin, end, color: spans.length % 2 ? '--module-odd' : '--module-even',
                       text: title.split('.').pop(), title, details: []});
    });
    return spans;
  }

  copySpans(track, color) {
    const {run} = this.page, {copies} = run, spans = [];
    run.copyTimes.forEach((begin, i) => {
      if (copies.track[i] !== track) return;
      const duration = copies.duration_ns[i], tensor = copies.tensor[i], bytes = copies.bytes[i];
      spans.push({begin, end: begin + duration, color, text: bytesText(bytes),
                  title: `${bytesText(bytes)} at ${(bytes / Math.max(1, duration)).toFixed(1)} GB/s`,
                  details: [tensor < 0 ? 'parameters' : run.tensorText(tensor)]});
    });
    return spans;
  }

  draw() {
    this.rows = this.makeRows();
    Object.assign(this.svg.dataset, {computeNs: this.sumOf('compute'), stallsNs: this.sumOf('stalls'),
                                     stepNs: this.page.run.stepNs});
    const height = this.rows.length * (kRowHeight + kRowGap) + 26;
    const width = beginChart(this.svg, height);
    this.left = kMargin.left;
    this.right = width - kMargin.right;
    this.drawTimes(height);
    this.rows.forEach((row, number) => this.drawRow(row, 4 + number * (kRowHeight + kRowGap)));
    this.drawLegend();
  }

  sumOf(name) {
    const row = this.rows.find((candidate) => candidate.name === name);
    return row ? row.spans.reduce((sum, {begin, end}) => sum + end - begin, 0) : 0;
  }

  x(ns) {
    const [begin, end] = this.page.view;
    return this.left + (ns - begin) / (end - begin) * (this.right - this.left);
  }

  drawTimes(height) {
    const [begin, end] = this.page.view;
    for (const ns of ticks(begin, end, (this.right - this.left) / 140)) {
      add(this.svg, 'line', {x1: this.x(ns), x2: this.x(ns), y1: 0, y2: height - 22, class: 'axis'});
      add(this.svg, 'text', {x: this.x(ns), y: height - 7, 'text-anchor': ns === 0 ? 'start' : 'middle'}, timeText(ns));
    }
  }

  // Draws the spans of a row as one path per colour; spans that are closer than a third of a pixel become one.
  drawRow(row, y) {
    row.top = y;
    add(this.svg, 'text', {x: this.left - 7, y: y + 13, 'text-anchor': 'end'}, row.name);
    add(this.svg, 'rect', {x: this.left, y, width: this.right - this.left, height: kRowHeight, fill: 'var(--grid)', opacity: 0.6});
    const [begin, end] = this.page.view, open = new Map(), data = new Map(), texts = [];
    const close = (color, [from, to]) => {
      const gap = to - from > 3 ? 0.6 : 0;
      const bar = `M${from.toFixed(2)},${y}h${Math.max(0.4, to - from - gap).toFixed(2)}v${kRowHeight}H${from.toFixed(2)}z`;
      data.set(color, (data.get(color) || '') + bar);
    };
    for (const span of row.spans) {
      if (span.end <= begin || span.begin >= end || span.end <= span.begin) continue;
      const from = Math.max(this.left, this.x(span.begin)), to = Math.min(this.right, this.x(span.end));
      const last = open.get(span.color);
      if (last && from - last[1] < 0.35 && to - from < 1) {
        last[1] = Math.max(last[1], to);
        continue;
      }
      if (last) close(span.color, last);
      open.set(span.color, [from, to]);
      if (span.text && span.text.length * 6.4 + 8 < to - from) texts.push([from + 4, span.text]);
    }
    open.forEach((bar, color) => close(color, bar));
    data.forEach((path, color) => add(this.svg, 'path', {d: path, fill: `var(${color})`}));
    for (const [x, text] of texts) add(this.svg, 'text', {x, y: y + 13, class: 'ink through'}, text);
  }

  drawLegend() {
    const legend = byId('timeline-legend'), {run} = this.page, sums = new Map();
    legend.replaceChildren();
    run.stalls.reason.forEach((reason, i) => {
      const sum = sums.get(reason) || {ns: 0, count: 0};
      sums.set(reason, {ns: sum.ns + run.stalls.duration_ns[i], count: sum.count + 1});
    });
    for (const [reason, {ns, count}] of [...sums].sort((a, b) => b[1].ns - a[1].ns)) {
      const [text, color] = kStallReasons[reason];
      addLegendEntry(legend, `var(${color})`, 'stall: ' + text, `${timeText(ns)} in ${count}`);
    }
    if (!sums.size) legend.textContent = 'no stalls';
  }

  hover(event) {
    const {x, y} = pointIn(this.svg, event);
    const row = this.rows.find(({top}) => y >= top && y <= top + kRowHeight);
    if (event.buttons || !row || x < this.left || x > this.right) return hideTooltip();
    const [begin, end] = this.page.view, pixel = (end - begin) / (this.right - this.left);
    const ns = begin + (x - this.left) * pixel;
    const distance = (span) => ns < span.begin ? span.begin - ns : ns > span.end ? ns - span.end : 0;
    const nearest = row.spans.filter((span) => span.end > span.begin && distance(span) <= pixel)
                             .sort((a, b) => distance(a) - distance(b))[0];
    if (!nearest) return hideTooltip();
    showTooltip(event, (tooltip) => {
      add(tooltip, 'div', {class: 'title'}, nearest.title);
      for (const line of nearest.details) add(tooltip, 'div', {class: 'code'}, line);
      add(tooltip, 'div', {class: 'faint'}, `${timeText(nearest.end - nearest.begin)} from ${timeText(nearest.begin)}`);
    });
  }
}
