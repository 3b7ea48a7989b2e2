// Tree map of memory by module: at the peak, or of everything that is saved.

const kTreeColors = ['--series-0', '--series-2', '--series-1', '--series-4', '--series-3', '--series-6', '--series-5', '--series-7'];

// Divides a rectangle among nodes in proportion to their bytes, with sides as equal as possible. (M. Bruls, K. Huizing,
// J. van Wijk: Squarified Treemaps, 2000.) Returns pairs of a node and its rectangle.
function squarify(nodes, area) {
  const placed = [], waiting = [...nodes].sort((a, b) => b.bytes - a.bytes);
  let {x, y, width, height} = area, left = waiting.reduce((sum, node) => sum + node.bytes, 0);
  while (waiting.length && left > 0 && width > 0 && height > 0) {
    const scale = width * height / left, side = Math.min(width, height), row = [];
    let size = 0, worst = Infinity;
    while (waiting.length) {
      const next = waiting[0].bytes * scale, largest = (row[0] || waiting[0]).bytes * scale, sum = size + next;
      const ratio = Math.max(side * side * largest / (sum * sum), sum * sum / (side * side * Math.max(next, 1e-9)));
      if (row.length && ratio > worst) break;
      row.push(waiting.shift());
      [size, worst] = [sum, ratio];
    }
    const thickness = size / side;
    let offset = 0;
    for (const node of row) {
      const length = node.bytes * scale / thickness;
      placed.push([node, width >= height ? {x, y: y + offset, width: thickness, height: length}
                                         : {x: x + offset, y, width: length, height: thickness}]);
      offset += length;
      left -= node.bytes;
    }
    if (width >= height) [x, width] = [x + thickness, width - thickness];
    else [y, height] = [y + thickness, height - thickness];
  }
  return placed;
}

class TreeMap {
  constructor(page) {
    this.page = page;
    this.svg = byId('tree-map');
    this.of = 'peak';
    this.folds = true;
    this.path = [];
    byId('tree-section').hidden = false;
    const controls = byId('tree-controls');
    addChoice(controls, 'memory', [['peak', 'at the peak'], ['saved', 'all saved tensors']], this.of, (of) => {
      this.of = of;
      this.show([]);
    });
    addCheckbox(controls, 'repeated modules as one', true, (on) => {
      this.folds = on;
      this.show([]);
    });
    this.up = add(controls, 'button', {id: 'tree-up', onclick: () => this.show(this.path.slice(0, -1))}, '← up');
  }

  show(path) {
    this.path = path;
    this.draw();
  }

  // The tree of modules; the leaves are operators.
  makeTree() {
    const root = {name: 'step', bytes: 0, children: new Map()};
    const put = (module, op, bytes) => {
      let node = root;
      root.bytes += bytes;
      for (const part of [...(this.folds ? foldedModule(module) : module).split('.'), op]) {
        if (!node.children.has(part)) node.children.set(part, {name: part, bytes: 0, children: new Map()});
        node = node.children.get(part);
        node.bytes += bytes;
      }
    };
    if (this.of === 'peak') this.putPeak(put);
    else this.putSaved(put);
    return TreeMap.joined(root);
  }

  putPeak(put) {
    const {run} = this.page;
    for (const life of run.liveAfter(run.peakChange)) {
      const kind = run.lives.kind[life], module = run.name(run.lives.module[life]) || `(${kKinds[kind][1]})`;
      put(module, run.lifeOp(life) + (kind === 2 ? ' (gradient)' : ''), run.lives.bytes[life]);
    }
  }

  // Every content counts once, with the size of the largest tensor that is saved of it.
  putSaved(put) {
    const {run} = this.page, {saved} = run, largest = new Map();
    saved.bytes.forEach((bytes, tensor) => {
      if (!saved.is_movable[tensor]) return;
      const content = saved.storage[tensor] + '.' + saved.version[tensor];
      if (!largest.has(content) || saved.bytes[largest.get(content)] < bytes) largest.set(content, tensor);
    });
    for (const tensor of largest.values()) {
      put(run.module(saved.module[tensor]), shortOp(run.name(saved.op[tensor])), saved.bytes[tensor]);
    }
  }

  // Joins each module that has a single child with it: `a` in which only `b` holds memory becomes `a.b`.
  static joined(node) {
    for (const child of node.children.values()) {
      for (let only; child.children.size === 1 && (only = [...child.children.values()][0]).children.size;) {
        child.label = (child.label || child.name) + '.' + only.name;
        child.children = only.children;
      }
      TreeMap.joined(child);
    }
    return node;
  }

  draw() {
    let node = this.makeTree();
    const total = node.bytes, labels = [];
    this.path = this.path.filter((name) => {
      const child = node.children.get(name);
      if (child) labels.push((node = child).label || child.name);
      return Boolean(child);
    });
    this.up.hidden = !this.path.length;
    this.describe(total, node, labels.join('.'));
    const height = 360, width = beginChart(this.svg, height);
    squarify(node.children.values(), {x: 0, y: 0, width, height}).forEach(([child, area], rank) =>
        this.drawNode(child, area, kTreeColors[rank % kTreeColors.length], total));
    if (!total) add(this.svg, 'text', {x: 8, y: 20}, 'nothing');
  }

  describe(total, node, label) {
    const what = this.of === 'peak' ? 'Made in the step and live at its peak' : 'Saved for backward, without parameters';
    byId('tree-caption').textContent = `${what}: ${bytesText(total)}` +
        (label ? `; ${label}: ${bytesText(node.bytes)}.` : '. Choose a module to enter it.');
  }

  drawNode(node, {x, y, width, height}, color, total) {
    const isBranch = node.children.size > 0, label = node.label || node.name;
    const enter = () => { hideTooltip(); this.show([...this.path, node.name]); };
    const group = add(this.svg, 'g', isBranch ? {
      class: 'pick', tabindex: 0, role: 'button', 'aria-label': `${label}, ${bytesText(node.bytes)}`, onclick: enter,
      onkeydown: (event) => event.key === 'Enter' && enter(),
    } : {});
    group.dataset.name = node.name;
    this.drawBox(group, {x: x + 1, y: y + 1, width: width - 2, height: height - 2}, color, 0.3, label, node.bytes, total);
    const title = isBranch && height > 46 && width > 50 ? 18 : 0;
    this.drawText(group, label, bytesText(node.bytes), {x, y, width, height}, title > 0 || !isBranch, 'strong', title > 0);
    if (!isBranch) return;
    const inner = {x: x + 4, y: y + 4 + title, width: width - 8, height: height - 8 - title};
    for (const [child, box] of squarify(node.children.values(), inner)) {
      const name = child.label || child.name;
      this.drawBox(group, {x: box.x + 0.6, y: box.y + 0.6, width: box.width - 1.2, height: box.height - 1.2}, color, 0.6,
                   `${label}.${name}`, child.bytes, total);
      this.drawText(group, name, bytesText(child.bytes), box, true, 'ink', false);
    }
  }

  drawBox(group, {x, y, width, height}, color, opacity, label, bytes, total) {
    if (width <= 0 || height <= 0) return;
    add(group, 'rect', {
      x, y, width, height, rx: 2, fill: `var(${color})`, opacity,
      onpointermove: (event) => showTooltip(event, (tooltip) => {
        add(tooltip, 'div', {class: 'title'}, label);
        add(tooltip, 'div', {}, `${bytesText(bytes)}, ${(100 * bytes / total).toFixed(1)}%`);
      }),
      onpointerleave: hideTooltip,
    });
  }

  drawText(group, name, amount, {x, y, width, height}, isWanted, style, onOneLine) {
    if (!isWanted || height < 17 || width < 32) return;
    const text = fitted(onOneLine ? `${name}  ${amount}` : name, width - 12, style === 'strong' ? 7.2 : 6.6);
    add(group, 'text', {x: x + 6, y: y + 15, class: style + ' through'}, text);
    if (!onOneLine && height > 34 && amount.length * 6.6 < width - 10) {
      add(group, 'text', {x: x + 6, y: y + 28, class: 'soft through'}, amount);
    }
  }
}
