// An aggregation as a live table, sorted by any column and filtered, and the records of a program.
import {element, tableOf} from "./machines.js";

const MOST_ROWS = 200;
const MOST_RECORDS_KEPT = 20000, MOST_RECORDS_SHOWN = 300;
const SVG = "http://www.w3.org/2000/svg";

export const svg = (name, attributes = {}, ...children) => {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

export const isDistribution = (entry) => Array.isArray(entry.buckets);
export const total = (entry) => entry.buckets.reduce((sum, bucket) => sum + bucket.count, 0);

const frameText = (frame) => frame.name ?? frame.address;
/** A key of an aggregation, or a value of a record, as one text. */
export const keyText = (key) => {
  if (key === null) return "-";
  if (Array.isArray(key)) return key.map(frameText).join(" < ");
  return typeof key === "object" ? JSON.stringify(key) : String(key);
};

export const number = (value) => typeof value === "number" ? value.toLocaleString("en") : String(value);

/** The end of the range that holds this share of the values. */
const percentile = (entry, share, func) => {
  const wanted = total(entry) * share;
  let sum = 0;
  for (const [i, bucket] of entry.buckets.entries()) {
    sum += bucket.count;
    if (sum < wanted || sum === 0) continue;
    // Ranges of quantize() are named after the value next to zero.
    const isNamedByEnd = func === "quantize" && bucket.value < 0;
    return entry.buckets[i + 1] && !isNamedByEnd ? entry.buckets[i + 1].value - 1 : bucket.value;
  }
  return 0;
};

const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));

/** Text of a cell is only written if it differs: what is written is laid out anew. */
const setText = (node, text) => { if (node.textContent !== text) node.textContent = text; };

export class AggregationTable {
  /** Columns are the keys, then those of the value. */
  constructor(name) {
    this.name = name;
    this.filter = element("input", {type: "search", placeholder: "filter", "aria-label": `filter @${name}`});
    this.filter.oninput = () => this.draw();
    this.note = element("span", {class: "note"});
    this.head = element("tr");
    this.body = element("tbody");
    this.table = element("table", {"aria-label": `@${name}`}, element("thead", {}, this.head), this.body);
    this.node = element("div", {}, element("div", {class: "bar"}, this.filter, this.note),
      element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": `@${name}`}, this.table));
    this.entries = [];
    this.columns = [];
    this.sort = null;
  }

  show(entries, {leftOut, func, machines}) {
    this.entries = entries;
    this.leftOut = leftOut;
    const keys = entries[0]?.keys.length ?? 0, distribution = entries.length > 0 && isDistribution(entries[0]);
    const shape = `${keys} ${distribution} ${machines}`;
    if (entries.length && shape !== this.shape) {
      this.shape = shape;
      this.setColumns(keys, distribution, func, machines);
    }
    this.draw();
  }

  setColumns(keys, distribution, func, machines) {
    const columns = machines ? [{title: "machine", value: (entry) => entry.machine}] : [];
    for (let i = 0; i < keys; ++i) columns.push({title: `key ${i + 1}`, value: (entry) => typeof entry.keys[i] === "number" ? entry.keys[i] : keyText(entry.keys[i])});
    if (distribution) {
      columns.push({title: "values", value: total, right: true}, {title: "p50 ≤", value: (entry) => percentile(entry, .5, func), right: true},
        {title: "p99 ≤", value: (entry) => percentile(entry, .99, func), right: true}, {title: func, bars: true, value: total});
    } else {
      columns.push({title: func, value: (entry) => entry[func], right: true});
    }
    this.columns = columns;
    this.sort = {column: columns.findIndex((column) => column.right), down: true};
    this.body.replaceChildren();
    this.head.replaceChildren(...columns.map((column, i) => {
      const button = element("button", {type: "button"}, column.title);
      button.onclick = () => this.sortBy(i);
      return element("th", {scope: "col", ...(column.right ? {class: "number"} : {})}, button);
    }));
  }

  sortBy(column) {
    this.sort = {column, down: this.sort.column === column ? !this.sort.down : Boolean(this.columns[column].right)};
    this.draw();
  }

  draw() {
    if (!this.columns.length) return;
    const words = this.filter.value.toLowerCase();
    const {column, down} = this.sort, value = this.columns[column].value;
    let rows = this.entries;
    if (words) rows = rows.filter((entry) => `${entry.machine} ${entry.keys.map(keyText).join(" ")}`.toLowerCase().includes(words));
    rows = rows.map((entry) => [value(entry), entry]).sort((a, b) => down ? compare(b[0], a[0]) : compare(a[0], b[0]));
    this.head.childNodes.forEach((cell, i) => cell.setAttribute("aria-sort", i !== column ? "none" : down ? "descending" : "ascending"));
    const more = [];
    if (rows.length > MOST_ROWS) more.push(`${number(rows.length - MOST_ROWS)} more rows: filter to see them`);
    if (this.leftOut) more.push(`${number(this.leftOut)} keys with smaller values are not sent while the program runs`);
    setText(this.note, [`${number(rows.length)} keys`, ...more].join("; "));
    this.fill(rows.slice(0, MOST_ROWS).map(([, entry]) => entry));
  }

  fill(entries) {
    while (this.body.rows.length > entries.length) this.body.lastChild.remove();
    while (this.body.rows.length < entries.length)
      this.body.append(element("tr", {}, ...this.columns.map((column) => element("td", column.right ? {class: "number"} : {}))));
    entries.forEach((entry, i) => {
      const cells = this.body.rows[i].cells;
      this.columns.forEach((column, at) => {
        if (column.bars) return drawBars(cells[at], entry);
        const value = column.value(entry);
        setText(cells[at], column.right ? number(value) : String(value));
      });
    });
  }
}

const drawBars = (cell, entry) => {
  const most = Math.max(1, ...entry.buckets.map((bucket) => bucket.count)), width = 120 / entry.buckets.length;
  const path = entry.buckets.map((bucket, i) => {
    const height = 16 * bucket.count / most;
    return `M${(i * width).toFixed(1)} 16v${(-height).toFixed(1)}h${(width * .8).toFixed(1)}V16z`;
  }).join("");
  if (cell.dataset.path === path) return;
  cell.dataset.path = path;
  const told = entry.buckets.filter((bucket) => bucket.count).map((bucket) => `${bucket.range ?? bucket.value}: ${bucket.count}`).join(", ");
  cell.replaceChildren(svg("svg", {viewBox: "0 0 120 16", preserveAspectRatio: "none", role: "img", "aria-label": told},
    svg("path", {class: "bars", d: path})));
};

/** One action's part of a record. */
const itemText = (item) => {
  if ("message" in item) return item.message.replace(/\n$/, "");
  if ("aggregation-data" in item) return `@${item["aggregation-name"]}: ${item["aggregation-data"].length} keys`;
  if ("value" in item) return keyText(item.value);
  const [name, value] = Object.entries(item)[0] ?? ["", ""];
  return name.endsWith("-frames") ? keyText(value) : `${name} ${keyText(value)}`;
};

/** The values that follow a printf()'s message repeat what it says. */
const outputText = (record) => {
  if (record.error) return record.error.msg;
  if (record.msg) return record.msg;
  const output = record.output ?? [];
  const messages = output.filter((item) => "message" in item);
  return (messages.length ? messages : output).map(itemText).join(" ");
};

/** The numbers of a record, which can be drawn as a heat map. */
export const numbersOf = (record) =>
  (record.output ?? []).map((item) => item.value).filter((value) => typeof value === "number");

export const RECORD_COLUMNS = [["Time", (record) => (record.timestamp / 1e9).toFixed(6)], ["Machine", (record) => record.machine ?? ""],
  ["CPU", (record) => record.cpu], ["Probe", (record) => [record.provider, record.module, record.function, record.name].join(":")],
  ["Process", (record) => record.execname === undefined ? "" : `${record.execname} ${record.pid}`], ["Output", outputText]];

export class Records {
  constructor() {
    this.kept = [];
    this.fresh = [];
    this.count = 0;
    this.paused = false;
    this.filter = element("input", {type: "search", placeholder: "filter", "aria-label": "filter records"});
    this.filter.oninput = () => this.drawAll();
    this.pause = element("button", {type: "button", "aria-pressed": "false"}, "Pause");
    this.pause.onclick = () => this.setPaused(!this.paused);
    this.note = element("span", {class: "note"});
    this.body = element("tbody");
    this.table = element("table", {"aria-label": "records"}, element("thead", {}, element("tr", {},
      ...RECORD_COLUMNS.map(([title]) => element("th", {scope: "col"}, title)))), this.body);
    this.scroll = element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "records"}, this.table);
    this.node = element("section", {}, element("div", {class: "bar"}, element("h3", {}, "Records"), this.note, this.filter, this.pause),
      this.scroll);
    this.leftOut = 0;
  }

  setPaused(paused) {
    this.paused = paused;
    this.pause.setAttribute("aria-pressed", String(paused));
    this.pause.textContent = paused ? "Go on" : "Pause";
    if (!paused) this.drawAll();
  }

  add(record) {
    ++this.count;
    this.kept.push(record);
    if (this.kept.length > MOST_RECORDS_KEPT * 1.1) this.kept.splice(0, this.kept.length - MOST_RECORDS_KEPT);
    if (this.paused) return;
    this.fresh.push(record);
    if (this.fresh.length > MOST_RECORDS_SHOWN) this.fresh.shift();
  }

  matches(record, words) {
    return !words || RECORD_COLUMNS.some(([, text]) => String(text(record)).toLowerCase().includes(words));
  }

  row(record) {
    return element("tr", {}, ...RECORD_COLUMNS.map(([, text]) => element("td", {}, String(text(record)))));
  }

  /** The latest is last; the view follows it unless the reader has scrolled up. */
  draw() {
    const words = this.filter.value.toLowerCase();
    const follows = this.scroll.scrollTop + this.scroll.clientHeight > this.scroll.scrollHeight - 40;
    const rows = this.fresh.splice(0).filter((record) => this.matches(record, words)).map((record) => this.row(record));
    this.body.append(...rows);
    while (this.body.rows.length > MOST_RECORDS_SHOWN) this.body.firstChild.remove();
    if (rows.length && follows) this.scroll.scrollTop = this.scroll.scrollHeight;
    const parts = [`${number(this.count)} records`];
    if (this.leftOut) parts.push(`${number(this.leftOut)} more came too fast to show, and are saved`);
    if (this.count > this.body.rows.length) parts.push(`the last ${this.body.rows.length} are shown`);
    setText(this.note, parts.join("; "));
  }

  drawAll() {
    const words = this.filter.value.toLowerCase();
    this.body.replaceChildren();
    this.fresh = this.kept.filter((record) => this.matches(record, words)).slice(-MOST_RECORDS_SHOWN);
    this.draw();
  }
}

export const tableOfRecords = (records) => tableOf(RECORD_COLUMNS, records, "records behind the cell");
