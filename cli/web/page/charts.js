// Lines over time, and heat maps that tell what is in a cell.
import {element} from "./machines.js";
import {svg, keyText, number, numbersOf, tableOfRecords} from "./tables.js";

const MOST_LINES = 8, MOST_POINTS = 300, MOST_COLUMNS = 120, MOST_TOLD = 100, LEAST_SPAN_MS = 10000;
const WIDTH = 900, HEIGHT = 260, LEFT = 70, BOTTOM = 24, TOP = 8;

const timeText = (at) => new Date(at).toLocaleTimeString("en-GB");

/** The next number that divides into four parts which can be read. */
const roundUp = (value) => {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 4, 6, 8, 10].find((step) => step * power >= value);
};

/** One point alone is a line of no length, which is drawn as a dot. */
const dotted = (points) => points.length === 1 ? [points[0], points[0]] : points;

/** Entries by time: of the keys with the largest values, their values or how fast these grow. */
export class Lines {
  constructor(name, func) {
    this.name = name;
    this.func = func;
    this.times = [];
    this.series = new Map();
    this.rate = element("select", {"aria-label": `values of @${name} are drawn as`},
      element("option", {value: "value"}, "values"), element("option", {value: "rate"}, "per second"));
    if (["count", "sum"].includes(func)) this.rate.value = "rate";
    this.rate.onchange = () => this.draw();
    this.picture = svg("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img"});
    this.legend = element("ul", {class: "legend"});
    this.node = element("div", {}, element("div", {class: "bar"}, this.rate), element("figure", {}, this.picture, this.legend));
  }

  add(entries, at) {
    this.times.push(at);
    for (const entry of entries) {
      const name = [entry.machine, ...entry.keys.map(keyText)].filter(Boolean).join(" ") || `@${this.name}`;
      if (!this.series.has(name)) this.series.set(name, new Map());
      this.series.get(name).set(at, entry[this.func]);
    }
    if (this.times.length <= MOST_POINTS) return;
    const gone = this.times.shift();
    for (const [name, points] of this.series) {
      points.delete(gone);
      if (!points.size) this.series.delete(name);
    }
  }

  /** The points that are drawn of a series. */
  points(series) {
    const values = this.times.filter((at) => series.has(at)).map((at) => [at, series.get(at)]);
    if (this.rate.value === "value") return values;
    return values.slice(1).map(([at, value], i) => [at, Math.max(0, value - values[i][1]) * 1000 / (at - values[i][0])]);
  }

  draw() {
    const lines = [...this.series].map(([name, series]) => ({name, points: this.points(series), last: [...series.values()].at(-1)}))
      .filter((line) => line.points.length).sort((a, b) => b.last - a.last).slice(0, MOST_LINES);
    const begin = this.times[0], end = Math.max(this.times.at(-1), begin + LEAST_SPAN_MS);
    const most = roundUp(Math.max(1e-9, ...lines.flatMap((line) => line.points.map(([, value]) => value))));
    const least = Math.min(0, ...lines.flatMap((line) => line.points.map(([, value]) => value)));
    const x = (at) => LEFT + (WIDTH - LEFT - 10) * (at - begin) / (end - begin);
    const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - least) / (most - least));
    this.picture.replaceChildren(...this.axes(begin, end, least, most, y),
      ...lines.map((line, i) => svg("polyline", {class: `series line${i + 1}`, "vector-effect": "non-scaling-stroke",
        points: dotted(line.points).map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ")})));
    this.legend.replaceChildren(...lines.map((line, i) => element("li", {},
      svg("svg", {viewBox: "0 0 28 10", "aria-hidden": "true"}, svg("path", {class: `series line${i + 1}`, d: "M0 5H28"})),
      `${line.name}: ${number(Math.round(line.points.at(-1)[1] * 100) / 100)}`)));
    this.picture.setAttribute("aria-label", `@${this.name} over time; the last values are listed below`);
  }

  axes(begin, end, least, most, y) {
    const made = [];
    for (let i = 0; i <= 4; ++i) {
      const value = least + (most - least) * i / 4;
      made.push(svg("path", {class: "axis", d: `M${LEFT} ${y(value)}H${WIDTH - 10}`}),
        svg("text", {x: LEFT - 6, y: y(value) + 4, "text-anchor": "end"}, number(Math.round(value * 100) / 100)));
    }
    made.push(svg("text", {x: LEFT, y: HEIGHT - 6}, timeText(begin)), svg("text", {x: WIDTH - 10, y: HEIGHT - 6, "text-anchor": "end"}, timeText(end)));
    return made;
  }
}

/** The power of two below it, as quantize() has it. */
const bucketOf = (value) => value === 0 ? 0 : Math.sign(value) * 2 ** Math.floor(Math.log2(Math.abs(value)));

/** Columns are times, rows ranges of values. The keyboard moves a mark over the cells and asks as a click does. */
export class HeatMap {
  /** `behind` finds the records of a span of time and a range of values; `begun` is when the first column begins. */
  constructor(name, behind, begun) {
    this.name = name;
    this.begun = begun;
    this.behind = behind;
    this.columns = [];
    this.last = new Map();
    this.mark = null;
    this.canvas = element("canvas", {tabindex: "0", role: "application", "aria-label":
      `heat map of ${name}: arrow keys move over the cells, Enter asks what is in one`, width: "1800", height: "520"});
    this.canvas.onclick = (event) => this.askAt(event);
    this.canvas.onkeydown = (event) => this.key(event);
    this.told = element("figcaption", {role: "status"}, "click a cell, or move to it with the arrow keys and press Enter");
    this.answer = element("div", {class: "scroll", hidden: "", tabindex: "0", role: "region", "aria-label": "what was in the cell"});
    this.node = element("div", {}, element("figure", {}, this.canvas, this.told), this.answer);
  }

  push(column) {
    this.columns.push(column);
    if (this.columns.length > MOST_COLUMNS) {
      this.columns.shift();
      if (this.mark) this.mark.column = Math.max(0, this.mark.column - 1);
    }
  }

  /** A column of what has come since the last one. Fewer than before: the program has emptied them. */
  addBuckets(entries, at) {
    const cells = new Map(), now = new Map();
    for (const entry of entries) {
      const key = [entry.machine, ...entry.keys.map(keyText)].filter(Boolean).join(" ");
      for (const bucket of entry.buckets) {
        if (!bucket.count) continue;
        const id = `${key}\n${bucket.value}`, before = this.last.get(id) ?? 0;
        now.set(id, bucket.count);
        const count = bucket.count < before ? bucket.count : bucket.count - before;
        if (!count) continue;
        const cell = cells.get(bucket.value) ?? {count: 0, keys: new Map()};
        cell.count += count;
        cell.keys.set(key, (cell.keys.get(key) ?? 0) + count);
        cells.set(bucket.value, cell);
      }
    }
    this.last = now;
    this.push({from: this.columns.at(-1)?.to ?? this.begun ?? at, to: at, cells});
  }

  addNumber(value, at) {
    let column = this.columns.at(-1);
    if (!column || at >= column.from + 500) this.push(column = {from: at, to: at + 500, cells: new Map()});
    column.to = Math.max(column.to, at);
    const bucket = bucketOf(value), cell = column.cells.get(bucket) ?? {count: 0, keys: new Map()};
    ++cell.count;
    column.cells.set(bucket, cell);
  }

  rows() {
    const values = [...new Set(this.columns.flatMap((column) => [...column.cells.keys()]))].sort((a, b) => a - b);
    return values.length ? values : [0];
  }

  geometry() {
    const rows = this.rows(), {width, height} = this.canvas;
    return {rows, left: 180, bottom: 50, cellWidth: (width - 190) / Math.max(this.columns.length, 20), cellHeight: (height - 60) / rows.length, width, height};
  }

  draw() {
    const context = this.canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    const {rows, left, bottom, cellWidth, cellHeight, width, height} = this.geometry();
    const heat = style.getPropertyValue("--heat"), most = Math.max(1, ...this.columns.flatMap((column) => [...column.cells.values()].map((cell) => cell.count)));
    context.clearRect(0, 0, width, height);
    this.columns.forEach((column, at) => rows.forEach((value, row) => {
      const count = column.cells.get(value)?.count;
      if (!count) return;
      context.fillStyle = `rgba(${heat}, ${(.15 + .85 * Math.log1p(count) / Math.log1p(most)).toFixed(3)})`;
      context.fillRect(left + at * cellWidth, height - bottom - (row + 1) * cellHeight, cellWidth - 1, cellHeight - 1);
    }));
    context.fillStyle = style.getPropertyValue("--soft");
    context.font = "24px system-ui, sans-serif";
    context.textAlign = "right";
    const step = Math.ceil(rows.length / 12);
    rows.forEach((value, row) => { if (row % step === 0) context.fillText(number(value), left - 10, height - bottom - row * cellHeight - 2); });
    context.textAlign = "left";
    if (this.columns.length) context.fillText(timeText(this.columns[0].from), left, height - 14);
    context.textAlign = "right";
    if (this.columns.length) context.fillText(timeText(this.columns.at(-1).to), width - 10, height - 14);
    if (!this.mark) return;
    context.strokeStyle = style.getPropertyValue("--front");
    context.lineWidth = 3;
    context.strokeRect(left + this.mark.column * cellWidth, height - bottom - (this.mark.row + 1) * cellHeight, cellWidth - 1, cellHeight - 1);
  }

  askAt(event) {
    const box = this.canvas.getBoundingClientRect(), {rows, left, bottom, cellWidth, cellHeight, width, height} = this.geometry();
    const column = Math.floor(((event.clientX - box.left) * width / box.width - left) / cellWidth);
    const row = Math.floor((height - bottom - (event.clientY - box.top) * height / box.height) / cellHeight);
    if (column < 0 || row < 0 || column >= this.columns.length || row >= rows.length) return;
    this.mark = {column, row};
    this.ask();
  }

  key(event) {
    const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]};
    if (!this.columns.length || !(event.key in moves || event.key === "Enter")) return;
    event.preventDefault();
    this.mark ??= {column: this.columns.length - 1, row: 0};
    if (event.key === "Enter") return this.ask();
    const [right, up] = moves[event.key], clamp = (value, most) => Math.min(Math.max(value, 0), most);
    this.mark = {column: clamp(this.mark.column + right, this.columns.length - 1), row: clamp(this.mark.row + up, this.rows().length - 1)};
    this.told.textContent = this.cellText();
    this.draw();
  }

  cellText() {
    const column = this.columns[this.mark.column], rows = this.rows(), value = rows[this.mark.row];
    const next = rows[this.mark.row + 1];
    const range = next === undefined ? `${number(value)} and more` : `${number(value)} to below ${number(next)}`;
    return `${timeText(column.from)} to ${timeText(column.to)}, ${range}: ${number(column.cells.get(value)?.count ?? 0)} values`;
  }

  /** The cell's keys, and the records behind it. */
  ask() {
    const column = this.columns[this.mark.column], rows = this.rows(), value = rows[this.mark.row];
    this.draw();
    const keys = [...column.cells.get(value)?.keys ?? []].sort((a, b) => b[1] - a[1]).slice(0, MOST_TOLD);
    const records = this.behind(column, value, rows[this.mark.row + 1] ?? Infinity);
    const parts = [`${this.cellText()}; ${number(records.length)} records behind it`];
    if (records.length > MOST_TOLD) parts.push(`the first ${MOST_TOLD} are shown`);
    this.told.textContent = parts.join("; ");
    this.answer.hidden = false;
    this.answer.replaceChildren();
    if (keys.some(([key]) => key)) this.answer.append(element("table", {"aria-label": "keys in the cell"}, element("tbody", {},
      ...keys.map(([key, count]) => element("tr", {}, element("td", {}, key), element("td", {class: "number"}, number(count)))))));
    if (records.length) this.answer.append(tableOfRecords(records.slice(0, MOST_TOLD)));
  }
}

/** A number of the record lies in the range. */
export const hasNumberIn = (record, from, to) => numbersOf(record).some((value) => value >= from && value < to);
