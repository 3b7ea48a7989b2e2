// Table of the saved tensors: each one, or added up by operator, module or source line.

const kRowsAtFirst = 200, kRowsMore = 2000, kRowsInPrint = 40;

// Reads a filter: words that must occur somewhere in a row, `op:`, `module:`, `line:`, `place:` before a word that must
// occur in that column, and sizes such as `>1MiB` or `<4K`. Returns a function from a row to whether it passes.
function readFilter(text) {
  const tests = text.toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
    const size = /^([<>])([\d.]+)([kmgt]?)(i?b)?$/.exec(word);
    if (size) {
      const limit = size[2] * 1024 ** ' kmgt'.indexOf(size[3] || ' ');
      return size[1] === '>' ? (row) => row.bytes > limit : (row) => row.bytes < limit;
    }
    const column = /^(op|module|line|place):(.*)$/.exec(word);
    if (column) return (row) => String(row[column[1]] ?? '').toLowerCase().includes(column[2]);
    return (row) => row.text.includes(word);
  });
  return (row) => tests.every((test) => test(row));
}

// A path that may be broken after its separators, and there alone.
const breakable = (path) => path.replace(/[./]/g, '$&\u200b');

class SavedTable {
  constructor(page) {
    this.page = page;
    this.by = 'tensor';
    this.sortBy = 'bytes';
    this.isAscending = false;
    this.shown = kRowsAtFirst;
    this.showsFixed = false;
    this.hasLines = page.runs.some((run) => run.saved.line.some((line) => line >= 0));
    byId('saved-section').hidden = page.runs.every((run) => run.is_memory_snapshot);
    this.addControls();
  }

  addControls() {
    const controls = byId('saved-controls');
    this.search = add(controls, 'input', {
      type: 'search', id: 'saved-filter', 'aria-label': 'filter', placeholder: 'filter: attention  op:mm  line:model.py  >1MiB',
      oninput: () => { this.shown = kRowsAtFirst; this.draw(); },
    });
    const choices = [['tensor', 'each tensor'], ['op', 'by operator'], ['module', 'by module']];
    if (this.hasLines) choices.push(['line', 'by source line']);
    addChoice(controls, 'rows', choices, this.by, (by) => {
      Object.assign(this, {by, sortBy: 'bytes', isAscending: false, shown: kRowsAtFirst});
      this.draw();
    });
    addCheckbox(controls, 'parameters, buffers and inputs too', false, (on) => { this.showsFixed = on; this.draw(); });
    this.count = add(controls, 'span', {class: 'faint', id: 'saved-count'});
  }

  // Filters the table by a column, as if the filter had been typed.
  filterBy(column, value) {
    const word = `${column}:${value.split(/\s/)[0]}`;
    const others = this.search.value.split(/\s+/).filter((each) => each && !each.startsWith(column + ':'));
    this.search.value = [...others, word].join(' ');
    this.draw();
  }

  tensorRows() {
    const {run} = this.page, {saved} = run;
    return saved.bytes.map((bytes, tensor) => {
      const row = {number: tensor, op: shortOp(run.name(saved.op[tensor])), layout: saved.layout[tensor], bytes,
                   place: this.placeText(tensor), held: saved.on_device_ns[tensor], stall: saved.stall_ns[tensor],
                   module: run.name(saved.module[tensor]), line: run.name(saved.line[tensor]),
                   content: saved.storage[tensor] + '.' + saved.version[tensor], isMovable: saved.is_movable[tensor]};
      row.text = [row.op, row.layout, row.place, row.module, row.line].join(' ').toLowerCase();
      return row;
    }).filter((row) => this.showsFixed || row.isMovable);
  }

  // The placement, and the reason where it is not the policy's plain decision.
  placeText(tensor) {
    const {placement, reason} = this.page.run.saved;
    return ['offloaded', 'rule', 'nothing_offloaded'].includes(reason[tensor]) ? placement[tensor]
        : `${placement[tensor]}: ${reason[tensor].replaceAll('_', ' ')}`;
  }

  groupedRows(rows) {
    const groups = new Map(), contents = new Set();
    for (const row of rows) {
      const key = this.by === 'module' ? foldedModule(row.module) || '(no module)' : row[this.by] || '(unknown)';
      if (!groups.has(key)) groups.set(key, {key, number: 0, bytes: 0, unique: 0, stall: 0});
      const group = groups.get(key);
      ++group.number;
      group.bytes += row.bytes;
      group.stall += row.stall;
      if (!contents.has(row.content)) group.unique += row.bytes;
      contents.add(row.content);
    }
    return [...groups.values()];
  }

  columns() {
    if (this.by !== 'tensor') {
      const key = {op: 'operator', module: 'module, repeated ones as one', line: 'source line'}[this.by];
      return [['key', key, 'code'], ['number', 'tensors', 'number'], ['bytes', 'bytes', 'bytes'],
              ['unique', 'each content once', 'size'], ['stall', 'stalls', 'time']];
    }
    const lines = this.hasLines ? [['line', 'source line', 'filter']] : [];
    return [['number', '#', 'number'], ['op', 'operator', 'text'], ['module', 'module', 'filter'], ...lines,
            ['layout', 'tensor', 'code whole'], ['bytes', 'bytes', 'bytes'], ['place', 'placement', 'text'],
            ['held', 'on the device', 'time'], ['stall', 'stalls', 'time']];
  }

  draw() {
    const all = this.tensorRows(), passing = all.filter(readFilter(this.search.value));
    const rows = this.by === 'tensor' ? passing : this.groupedRows(passing);
    const order = this.isAscending ? 1 : -1, key = this.sortBy;
    rows.sort((a, b) => (a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0) * order);
    const table = byId('saved-table'), columns = this.columns();
    table.replaceChildren();
    this.drawHead(add(add(table, 'thead'), 'tr'), columns);
    const body = add(table, 'tbody'), most = Math.max(1, ...rows.map((row) => row.bytes));
    rows.slice(0, this.shown).forEach((row, rank) => {
      const line = add(body, 'tr', rank < kRowsInPrint ? {} : {class: 'screen-only'});
      for (const column of columns) this.drawCell(line, row, column, most);
    });
    if (rows.length > this.shown) this.drawMore(body, rows.length - this.shown, columns.length);
    const bytes = passing.reduce((sum, row) => sum + row.bytes, 0);
    this.count.textContent = `${passing.length} of ${all.length} tensors, ${bytesText(bytes)}`;
    byId('saved-caption').textContent = `${this.page.run.label}: the tensors that autograd saves for backward, and how long ` +
        'an allocation of the step holds them. Choose a heading to sort, a module or a line to filter.';
  }

  drawHead(row, columns) {
    for (const [key, title, kind] of columns) {
      const isSorted = key === this.sortBy, isText = ['text', 'code', 'code whole', 'filter'].includes(kind);
      const order = !isSorted ? 'none' : this.isAscending ? 'ascending' : 'descending';
      const cell = add(row, 'th', {class: isText ? '' : 'number', 'aria-sort': order});
      add(cell, 'button', {onclick: () => {
        this.isAscending = isSorted ? !this.isAscending : isText || key === 'number' && this.by === 'tensor';
        this.sortBy = key;
        this.draw();
      }}, title + (isSorted ? this.isAscending ? ' ▲' : ' ▼' : ''));
    }
  }

  drawCell(line, row, [key, , kind], most) {
    const value = row[key];
    if (kind === 'filter') {
      const cell = add(line, 'td', {class: 'code'});
      const filter = () => this.filterBy(key, value);
      if (value) add(cell, 'button', {class: 'filter', title: 'filter by ' + key, onclick: filter}, breakable(value));
      return;
    }
    if (kind === 'text' || kind.startsWith('code')) {
      add(line, 'td', {class: kind === 'text' ? '' : kind}, value);
      return;
    }
    const cell = add(line, 'td', {class: 'number'});
    if (kind === 'bytes') add(cell, 'span', {class: 'bar'}).style.width = (56 * value / most).toFixed(1) + 'px';
    cell.append(kind === 'number' ? value : kind === 'time' ? value ? timeText(value) : '-' : bytesText(value));
  }

  drawMore(body, count, width) {
    const cell = add(add(body, 'tr', {class: 'screen-only'}), 'td', {colspan: width});
    add(cell, 'button', {class: 'more', onclick: () => { this.shown += kRowsMore; this.draw(); }}, `${count} more`);
  }
}
