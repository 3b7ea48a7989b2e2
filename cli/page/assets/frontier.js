// Pareto frontier of the policies that the tuner found: step time against device memory.

// Width in px below which the two texts above the plot need a line each.
const kNarrow = 560;
// Least distance in px of the centres of two points, and width of the longest name of a point.
const kApart = 11, kLongestName = 100;

class FrontierChart {
  constructor(page, frontier) {
    this.page = page;
    this.svg = byId('frontier');
    this.trace = frontier.source;
    const point = (candidate, name = '') => ({...candidate, name, ...FrontierChart.figures(candidate.file.predicted)});
    this.keep = point(frontier.keep, 'keep');
    this.trl = point(frontier.trl, 'trl');
    this.points = frontier.points.map((each) => point(each, each.is_chosen ? 'recommended' : ''));
    const same = (a, b) => a.peak === b.peak && a.time === b.time;
    if (!this.points.some((each) => same(each, this.keep))) this.points.push(this.keep);
    else this.points.find((each) => same(each, this.keep)).name ||= 'keep';
    this.hasReserved = this.points.every((each) => each.reserved !== undefined);
    this.by = this.hasReserved ? 'reserved' : 'peak';
    this.picked = this.points.find((each) => each.name === 'recommended') || this.points[0];
    byId('frontier-section').hidden = false;
    byId('frontier-caption').textContent = `Policies for ${frontier.source}: none that was tried needs less memory in as ` +
        'little time. Times are predicted. Choose a point to see its policy. Points that others would cover are left out.';
    if (this.hasReserved) {
      addChoice(byId('frontier-controls'), 'memory', [['reserved', 'reserved'], ['peak', 'requested']], this.by,
                (by) => { this.by = by; this.draw(); });
    }
  }

  static figures(predicted) {
    return {peak: predicted.device_peak_bytes, reserved: predicted.device_reserved_peak_bytes,
            time: predicted.step_time_ns, host: predicted.host_peak_bytes || 0};
  }

  draw() {
    const height = 300, width = beginChart(this.svg, height);
    // On a narrow page the note about a point outside does not fit beside the name of the axis.
    this.noteLine = width < kNarrow ? 28 : 12;
    this.plot = {left: kMargin.left, right: width - 18, top: this.noteLine + 14, bottom: height - 40};
    this.setScales();
    this.drawAxes(height);
    this.drawSteps();
    for (const point of this.pointsApart()) this.drawPoint(point);
    this.drawPoint(this.trl);
    this.drawPoint(this.picked);
    this.describePicked();
  }

  setScales() {
    const range = (values, share) => {
      const low = Math.min(...values), high = Math.max(...values), room = (high - low || high * 0.1 || 1) * share;
      return [low - room, high + room];
    };
    [this.fastest, this.slowest] = range(this.points.map((point) => point.time), 0.08);
    [this.least, this.most] = range(this.points.map((point) => point[this.by]), 0.12);
  }

  x(ns) {
    return this.plot.left + (ns - this.fastest) / (this.slowest - this.fastest) * (this.plot.right - this.plot.left);
  }

  y(bytes) {
    return this.plot.bottom - (bytes - this.least) / (this.most - this.least) * (this.plot.bottom - this.plot.top);
  }

  drawAxes(height) {
    const {left, right, top, bottom} = this.plot;
    for (const bytes of ticks(this.least, this.most, 6, 2)) {
      add(this.svg, 'line', {x1: left, x2: right, y1: this.y(bytes), y2: this.y(bytes), class: 'grid'});
      add(this.svg, 'text', {x: left - 7, y: this.y(bytes) + 4, 'text-anchor': 'end'}, bytesText(bytes));
    }
    for (const ns of ticks(this.fastest, this.slowest, (right - left) / 100)) {
      add(this.svg, 'line', {x1: this.x(ns), x2: this.x(ns), y1: top, y2: bottom, class: 'grid'});
      add(this.svg, 'text', {x: this.x(ns), y: bottom + 16, 'text-anchor': 'middle'}, timeText(ns));
    }
    add(this.svg, 'text', {x: right, y: height - 6, 'text-anchor': 'end'}, 'step time →');
    add(this.svg, 'text', {x: 4, y: 12},
        this.by === 'reserved' ? '↑ peak reserved by the allocator' : '↑ peak requested');
  }

  drawSteps() {
    let least = Infinity, data = '';
    for (const point of [...this.points].sort((a, b) => a.time - b.time)) {
      if (point[this.by] >= least) continue;
      least = point[this.by];
      const x = this.x(point.time).toFixed(1), y = this.y(least).toFixed(1);
      data += data ? `H${x}V${y}` : `M${x},${y}`;
    }
    add(this.svg, 'path', {d: data, fill: 'none', stroke: 'var(--accent)', opacity: 0.5, 'stroke-width': 1.5});
  }

  // Points that do not cover each other, but for those with a name; without the one that is picked.
  pointsApart() {
    const drawn = [];
    const isApart = (point) => drawn.every((other) => Math.hypot(
        this.x(point.time) - this.x(other.time), this.y(point[this.by]) - this.y(other[this.by])) >= kApart);
    for (const point of [...this.points].sort((a, b) => Boolean(b.name) - Boolean(a.name) || a.time - b.time))
      if (point.name || isApart(point)) drawn.push(point);
    return drawn.filter((point) => point !== this.picked);
  }

  drawPoint(point) {
    if (point[this.by] === undefined) return;
    const {left, right, top, bottom} = this.plot, x = this.x(point.time), y = this.y(point[this.by]);
    if (x < left || x > right || y < top - 8 || y > bottom) return this.noteOutside(point);
    const isPicked = point === this.picked;
    const pick = () => this.pick(point);
    add(this.svg, 'circle', {
      cx: x, cy: y, r: isPicked ? 7 : 5, class: 'pick', tabindex: 0, role: 'button',
      fill: point.name === 'recommended' ? 'var(--good)' : point.name ? 'var(--faint)' : 'var(--accent)',
      stroke: isPicked ? 'var(--ink)' : 'var(--card)', 'stroke-width': isPicked ? 2.5 : 1.5,
      'aria-label': `${point.description}: ${bytesText(point[this.by])}, ${timeText(point.time)}`,
      onclick: pick,
      onkeydown: (event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        pick();
      },
      onpointermove: (event) => showTooltip(event, (tooltip) => {
        add(tooltip, 'div', {class: 'title'}, point.description);
        add(tooltip, 'div', {}, this.figuresText(point));
      }),
      onpointerleave: hideTooltip,
    });
    if (!point.name) return;
    // The curve falls: it leaves room to the left below a point, and to the right above it.
    const isBelow = point.name === 'recommended' && x - left > kLongestName;
    const isLeft = isBelow || right - x < kLongestName;
    add(this.svg, 'text', {x: x + (isLeft ? -9 : 9), y: y + (isBelow ? 18 : -9), 'text-anchor': isLeft ? 'end' : 'start',
                           class: 'ink through'}, point.name);
  }

  noteOutside(point) {
    add(this.svg, 'text', {x: this.plot.right, y: this.noteLine, 'text-anchor': 'end'},
        `outside: ${point.name}, ${bytesText(point[this.by])} in ${timeText(point.time)}`);
  }

  figuresText(point) {
    const memory = `peak ${bytesText(point.peak)} (${changeText(point.peak, this.keep.peak)})`;
    const reserved = point.reserved === undefined ? ''
        : `, reserved ${bytesText(point.reserved)} (${changeText(point.reserved, this.keep.reserved)})`;
    return `${memory}${reserved}, step ${timeText(point.time)} (${changeText(point.time, this.keep.time)}), ` +
        `host memory ${bytesText(point.host)}`;
  }

  pick(point) {
    this.picked = point;
    hideTooltip();
    this.draw();
    this.page.pickPeak(point.peak);
  }

  describePicked() {
    const details = byId('frontier-details'), point = this.picked;
    details.replaceChildren();
    const text = add(details, 'p');
    add(text, 'strong', {id: 'picked-policy'}, point.description);
    text.append(': ' + this.figuresText(point) + '. Changes are against keep.');
    const file = policyText(point.file);
    const controls = add(details, 'div', {class: 'controls'});
    const link = add(controls, 'a', {download: 'policy.json'}, 'Save policy.json');
    link.href = URL.createObjectURL(new Blob([file], {type: 'application/json'}));
    add(controls, 'span', {class: 'faint'}, 'then');
    add(controls, 'span', {class: 'code'}, `offprof simulate ${this.trace} --policy policy.json`);
    const content = add(details, 'details');
    add(content, 'summary', {}, 'policy.json');
    add(content, 'pre', {class: 'code', id: 'picked-file'}, file);
  }
}

// Content of a policy file, with each list on one line.
function policyText(file) {
  const text = JSON.stringify(file, null, 2);
  return text.replace(/\[[^[\]{}]*\]/g, (list) => list.replace(/\s+/g, ' ')) + '\n';
}
