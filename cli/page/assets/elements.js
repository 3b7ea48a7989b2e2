'use strict';

// Elements of the page, and the texts of figures.

const byId = (id) => document.getElementById(id);
const kSvg = 'http://www.w3.org/2000/svg';

// Appends an element to `parent` and returns it. `attributes` may have `text`, `class`, and listeners such as `onclick`.
function add(parent, tag, attributes = {}, text = '') {
  const element = parent instanceof SVGElement || tag === 'svg' ? document.createElementNS(kSvg, tag)
                                                                : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element[name] = value;
    else element.setAttribute(name, value);
  }
  if (text !== '') element.textContent = text;
  parent.append(element);
  return element;
}

function addSwatch(parent, color) {
  add(parent, 'span', {class: 'swatch'}).style.background = color;
}

// Adds an entry of a legend: a colour, a name and an amount, which may be empty.
function addLegendEntry(legend, color, name, amount, title = '') {
  const entry = add(legend, 'span', title ? {title} : {});
  addSwatch(entry, color);
  entry.append(name);
  if (amount) add(entry, 'span', {class: 'amount'}, amount);
}

// Adds an entry for a dashed line.
function addLineEntry(legend, dashes, name) {
  const entry = add(legend, 'span');
  const line = {x1: 0, x2: 26, y1: 2, y2: 2, stroke: 'var(--ink)', 'stroke-width': 1.3, 'stroke-dasharray': dashes};
  add(add(entry, 'svg', {class: 'line-swatch'}), 'line', line);
  entry.append(name);
}

// Adds a row of buttons of which one is chosen. `choices` are pairs of a value and a text.
function addChoice(parent, label, choices, chosen, choose) {
  const row = add(parent, 'span', {class: 'choice', role: 'group', 'aria-label': label});
  const buttons = choices.map(([value, text]) => add(row, 'button', {
    'data-value': value,
    'aria-pressed': value === chosen,
    onclick: () => {
      for (const button of buttons) button.setAttribute('aria-pressed', button.dataset.value === String(value));
      choose(value);
    },
  }, text));
}

function addCheckbox(parent, text, checked, change) {
  const label = add(parent, 'label');
  const box = add(label, 'input', {type: 'checkbox'});
  box.checked = checked;
  box.onchange = () => change(box.checked);
  label.append(text);
  return box;
}

// Three significant digits, as offprof prints figures.
function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

function bytesText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes, unit = 0;
  for (; Math.abs(value) >= 1023.5 && unit < units.length - 1; ++unit) value /= 1024;
  return (unit === 0 ? String(value) : digits(value)) + ' ' + units[unit];
}

function timeText(ns) {
  const size = Math.abs(ns);
  if (size < 1e3) return Math.round(ns) + ' ns';
  if (size < 999.5e3) return digits(ns / 1e3) + ' µs';
  return size < 999.5e6 ? digits(ns / 1e6) + ' ms' : digits(ns / 1e9) + ' s';
}

function changeText(value, base) {
  if (value === base) return 'equal';
  if (!base) return 'new';
  const percent = 100 * (value / base - 1);
  return (percent > 0 ? '+' : '−') + Math.abs(percent).toFixed(Math.abs(percent) < 9.95 ? 1 : 0) + '%';
}

const metricText = (name, value) => name.endsWith('_ns') || /_ns_(min|max)$/.test(name) ? timeText(value)
    : /bytes/.test(name) ? bytesText(value) : value.toFixed(3);

// Positions of about `count` marks from `low` to `high`, at round numbers of the base 10 or 2.
function ticks(low, high, count, base = 10) {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0)) return [low];
  const power = base ** Math.floor(Math.log(rough) / Math.log(base));
  const steps = base === 10 ? [1, 2, 5, 10] : [1, 2];
  const step = power * steps.find((factor) => factor * power >= rough * 0.999);
  const marks = [];
  for (let mark = Math.ceil(low / step) * step; mark <= high; mark += step) marks.push(mark);
  return marks;
}

// Sets the size of a chart in CSS pixels, empties it, and returns its width.
function beginChart(svg, height) {
  const width = Math.max(280, Math.round(svg.getBoundingClientRect().width || svg.parentNode.clientWidth));
  svg.replaceChildren();
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  svg.style.height = height + 'px';
  return width;
}

// Position of the pointer in the units of the chart's viewBox.
function pointIn(svg, event) {
  const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
  return {x: (event.clientX - box.left) * view.width / box.width,
          y: (event.clientY - box.top) * view.height / box.height};
}

// Text cut to a width in pixels, at about `each` pixels a character; empty if nothing readable fits.
function fitted(text, width, each = 6.6) {
  const room = Math.floor(width / each);
  if (text.length <= room) return text;
  return room < 4 ? '' : text.slice(0, room - 1) + '…';
}

function showTooltip(event, fill) {
  const tooltip = byId('tooltip');
  tooltip.replaceChildren();
  fill(tooltip);
  tooltip.hidden = false;
  const {width, height} = tooltip.getBoundingClientRect();
  const right = event.clientX + 16 + width > innerWidth;
  tooltip.style.left = Math.max(4, right ? event.clientX - width - 16 : event.clientX + 16) + 'px';
  tooltip.style.top = Math.max(4, Math.min(innerHeight - height - 6, event.clientY + 14)) + 'px';
}

function hideTooltip() {
  byId('tooltip').hidden = true;
}
