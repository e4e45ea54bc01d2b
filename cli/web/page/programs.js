// The form for a program, and what each program shows: its messages, aggregations and records.
import {element} from "./machines.js";
import {AggregationTable, Records, isDistribution, numbersOf} from "./tables.js";
import {HeatMap, Lines, hasNumberIn} from "./charts.js";
import {saveHtml, saveJson} from "./save.js";

/** Tables and charts are drawn this often; records as soon as the screen takes them. */
const DRAW_EVERY_MS = 1000;
/** A flame graph is that many pixels high, and scrolls in its frame beyond. */
const MOST_HIGH = 900;

/** `$1`'s words, as a shell parts them: blanks part, quotes keep together. */
const words = (text) => [...text.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g)]
  .map((match) => match[1]?.replace(/\\(.)/g, "$1") ?? match[2] ?? match[3]);

const button = (text, action) => {
  const made = element("button", {type: "button"}, text);
  made.onclick = action;
  return made;
};

/** One aggregation, of all machines: a table, and pictures of how it goes on. */
class Aggregation {
  constructor(program, name, func) {
    this.program = program;
    this.name = name;
    this.func = func;
    this.byMachine = new Map();
    this.table = new AggregationTable(name);
    this.place = element("div");
    this.views = new Map([["table", this.table]]);
    this.choice = element("select", {"aria-label": `view of @${name}`}, element("option", {value: "table"}, "Table"));
    this.choice.onchange = () => this.choose();
    this.title = `@${name} ${func}`;
    this.node = element("section", {"aria-label": this.title}, element("div", {class: "bar"}, element("h3", {}, this.title), this.choice,
      button("JSON", () => saveJson(`${program.fileName}-${name}`, {aggregation: name, function: func, entries: this.entries()})),
      button("HTML", () => saveHtml(`${program.fileName}-${name}`, `${this.title}: ${program.title}`, [this.place]))), this.place);
    this.choose();
  }

  entries() { return [...this.byMachine.values()].flatMap((part) => part.entries); }

  offer(value, title, view) {
    if (this.views.has(value)) return;
    this.views.set(value, view);
    this.choice.append(element("option", {value}, title));
  }

  /** What a machine has now. */
  show(machine, item, at) {
    const entries = item["aggregation-data"];
    for (const entry of entries) entry.machine = machine;
    this.byMachine.set(machine, {entries, leftOut: item["left-out"] ?? 0});
    if (entries.some((entry) => entry.keys.some(Array.isArray))) this.offer("flame", "Flame graph", new Flame(this.program));
    else if (entries.some(isDistribution)) this.offer("heat", "Heat map", new HeatMap(`@${this.name}`, (column) => this.program.recordsIn(column), this.program.begun));
    else if (entries.length) this.offer("lines", "Lines", new Lines(this.name, this.func));
    this.latest = at;
  }

  choose() {
    this.place.replaceChildren(this.views.get(this.choice.value).node);
    if (this.choice.value === "flame") this.views.get("flame").load();
    this.draw();
  }

  /** Charts go on with the time, also while the table is shown, or while nothing changes: that comes as nothing new. */
  draw() {
    const entries = this.entries(), parts = [...this.byMachine.values()];
    const now = this.program.ended ? this.latest : Date.now();
    if (now > (this.drawn ?? 0)) {
      this.views.get("lines")?.add(entries, now);
      this.views.get("heat")?.addBuckets(entries, now);
      this.drawn = now;
    }
    if (this.choice.value === "table")
      this.table.show(entries, {func: this.func, machines: parts.length > 1, leftOut: parts.reduce((sum, part) => sum + part.leftOut, 0)});
    else this.views.get(this.choice.value).draw?.();
  }
}

/** The flame graph of all stacks of the program, which the server draws. */
class Flame {
  constructor(program) {
    this.program = program;
    this.note = element("span", {class: "note", role: "status"});
    this.place = element("div");
    this.node = element("div", {}, element("div", {class: "bar"}, button("Draw again", () => this.load()), this.note), this.place);
  }

  async load() {
    const address = `/api/picture?form=flame&program=${this.program.number}`;
    this.note.textContent = "drawing";
    try {
      this.program.picture = await this.program.ask(address);
      this.note.textContent = `as of ${new Date().toLocaleTimeString("en-GB")}`;
      const [, width, height] = this.program.picture.match(/viewBox="0 0 (\d+) (\d+)"/) ?? [0, 2, 1];
      // The frame has an origin of its own and may do nothing but run the picture's script.
      this.place.replaceChildren(element("iframe", {sandbox: "allow-scripts", src: address, title: "flame graph",
        height: Math.min(MOST_HIGH, Math.ceil(this.place.clientWidth * height / width) + 2)}));
    } catch (error) {
      this.note.textContent = error.message;
    }
  }
}

class Program {
  constructor(ask, order) {
    this.ask = ask;
    this.order = order;
    this.begun = Date.now();
    this.aggregations = new Map();
    this.records = new Records();
    this.title = order.d.replace(/\/\*.*?\*\//gs, "").trim().split("\n")[0].slice(0, 100);
    this.status = element("span", {class: "note", role: "status"}, "starting");
    this.stop = button("Stop", () => this.end());
    this.messages = element("div", {role: "log", "aria-label": "messages"});
    this.places = element("div");
    this.heading = element("h2", {}, this.title);
    this.links = element("span");
    this.node = element("article", {"aria-label": this.title}, element("div", {class: "bar"}, this.heading, this.status, this.stop,
      this.links, button("HTML", () => this.saveAll()), button("Remove", () => this.remove())),
    this.messages, this.places, this.records.node);
    this.valuesButton = button("Heat map", () => this.showValues());
    this.valuesButton.hidden = true;
    this.records.node.firstChild.append(this.valuesButton,
      button("JSON", () => saveJson(`${this.fileName}-records`, this.records.kept)),
      button("HTML", () => saveHtml(`${this.fileName}-records`, `records: ${this.title}`, [this.records.node])));
  }

  get fileName() { return `ringside-${this.number}`; }

  started(number) {
    this.number = number;
    this.heading.textContent = `#${number} ${this.title}`;
    this.status.textContent = "runs";
    const link = element("a", {href: `/api/records?program=${number}`, download: `${this.fileName}.jsonl`}, "All records (JSON lines)");
    this.links.append(link);
  }

  async end() {
    this.stop.disabled = true;
    this.status.textContent = "ending";
    try {
      await this.ask(`/api/stop?program=${this.number}`, {});
    } catch (error) {
      this.say(error.message, true);
    }
  }

  async remove() {
    if (!this.ended) await this.end();
    this.node.remove();
    this.removed = true;
  }

  say(text, isError) {
    const line = element("p", isError ? {class: "error", role: "alert"} : {class: "note"}, text);
    this.messages.append(line);
    while (this.messages.childNodes.length > 200) this.messages.firstChild.remove();
  }

  /** An error of the compiler is shown at its line. */
  message(text) {
    const isError = !/matched \d+ probe/.test(text);
    this.say(text.replace(/^ringside: /, "").replace("script '/dev/stdin' ", "").replace(/\/dev\/stdin:(\d+)/g, "line $1"), isError);
    const place = text.match(/\/dev\/stdin[^\d\n]{1,12}(\d+)/);
    if (!isError || !place || this.listing) return;
    const wrong = Number(place[1]);
    this.listing = element("pre", {"aria-label": `D, line ${wrong} is wrong`});
    this.order.d.split("\n").forEach((line, i) => this.listing.append(element("span", i + 1 === wrong ? {class: "wrong"} : {},
      `${String(i + 1).padStart(3)}  ${line}`), "\n"));
    this.messages.append(this.listing);
  }

  take(event) {
    const handlers = {
      record: () => this.takeRecord(event.record),
      message: () => this.message(event.text),
      "left-out": () => { this.records.leftOut = event.count; },
      large: () => this.say(`a record of ${(event.bytes / 1048576).toFixed(1)} MiB is too large to show; it is among all records`, false),
      end: () => this.takeEnd(event.status === 0 ? "ended" : `ended with status ${event.status}`),
    };
    handlers[event.kind]?.();
  }

  takeRecord(record) {
    const internal = record.provider === "dtrace" && record.module === "INTERNAL" ? record.name : "";
    if (internal === "MEANWHILE" || internal === "AGGREGATIONS") return this.takeAggregations(record);
    record.at = Date.now();
    this.records.add(record);
    const values = numbersOf(record);
    if (values.length) this.addValue(values[0], record.at);
  }

  /** Meanwhile all are told each time, so one that is missing has no keys any more. */
  takeAggregations(record) {
    const machine = record.machine ?? "", at = Date.now(), seen = new Set();
    for (const item of record.output ?? []) {
      const name = item["aggregation-name"];
      seen.add(name);
      if (!this.aggregations.has(name)) {
        const made = new Aggregation(this, name, item["aggregation-function"]);
        this.aggregations.set(name, made);
        this.places.append(made.node);
      }
      this.aggregations.get(name).show(machine, item, at);
    }
    for (const [name, aggregation] of this.aggregations) {
      if (!seen.has(name) && record.name === "MEANWHILE") aggregation.show(machine, {"aggregation-data": []}, at);
    }
  }

  addValue(value, at) {
    this.values ??= new HeatMap("the records' first numbers", (column, from, to) =>
      this.recordsIn(column).filter((record) => hasNumberIn(record, from, to)));
    this.values.addNumber(value, at);
    this.valuesButton.hidden = false;
  }

  showValues() {
    if (this.values.node.isConnected) return this.values.node.remove();
    this.records.node.insertBefore(this.values.node, this.records.scroll);
    this.values.draw();
  }

  recordsIn(column) { return this.records.kept.filter((record) => record.at >= column.from && record.at <= column.to); }

  takeEnd(how) {
    this.ended = true;
    this.stop.disabled = true;
    this.status.textContent = how;
    this.draw();
    this.records.draw();
  }

  draw() {
    for (const aggregation of this.aggregations.values()) aggregation.draw();
    if (this.values?.node.isConnected) this.values.draw();
  }

  saveAll() {
    const nodes = [this.messages, ...[...this.aggregations.values()].map((each) => each.node), this.records.node];
    return saveHtml(this.fileName, this.title, nodes, this.picture ? [this.picture] : []);
  }
}

export class Programs {
  constructor(ask, machines) {
    this.ask = ask;
    this.machines = machines;
    this.programs = new Map();
    this.early = new Map();
    this.place = document.getElementById("programs");
    this.d = document.getElementById("d");
    this.arguments = document.getElementById("arguments");
    this.error = document.getElementById("form-error");
    document.getElementById("form").onsubmit = (event) => { event.preventDefault(); this.run(); };
    this.d.onkeydown = (event) => { if (event.key === "Enter" && event.ctrlKey) this.run(); };
    this.listExamples();
    this.drawnAt = 0;
    this.frame = this.frame.bind(this);
  }

  async listExamples() {
    const list = document.getElementById("example");
    list.onchange = () => this.showExample(list.value);
    try {
      for (const line of (await this.ask("/api/examples")).split("\n")) {
        if (!line) break;
        const name = line.split(" ", 1)[0];
        list.append(element("option", {value: name}, `${name}: ${line.slice(name.length).trim()}`));
      }
    } catch (error) {
      this.error.textContent = error.message;
    }
  }

  async showExample(name) {
    if (!name) return;
    try {
      this.d.value = (await this.ask(`/api/examples?name=${encodeURIComponent(name)}`)).split("\n/* Sample output:")[0];
    } catch (error) {
      this.error.textContent = error.message;
    }
  }

  async run() {
    const order = {page: this.page, targets: this.machines.targets(), d: this.d.value, arguments: words(this.arguments.value)};
    this.error.textContent = "";
    if (!order.d.trim()) {
      this.error.textContent = "write a program, or choose an example";
      return;
    }
    const program = new Program(this.ask, order);
    try {
      const {program: number} = JSON.parse(await this.ask("/api/run", order));
      program.started(number);
      this.programs.set(number, program);
      this.place.prepend(program.node);
      for (const event of this.early.get(number) ?? []) this.take(event);
      this.early.delete(number);
    } catch (error) {
      this.error.textContent = error.message;
    }
  }

  /** A program's first events may overtake the answer that tells its number. */
  take(event) {
    const program = this.programs.get(event.program);
    if (!program) {
      this.early.set(event.program, [...this.early.get(event.program) ?? [], event]);
      return;
    }
    if (program.removed) return;
    program.take(event);
    if (!this.waiting) this.waiting = requestAnimationFrame(this.frame);
  }

  /** Draws what came since the last frame. */
  frame(now) {
    this.waiting = 0;
    const all = now - this.drawnAt >= DRAW_EVERY_MS;
    if (all) this.drawnAt = now;
    let later = false;
    for (const program of this.programs.values()) {
      if (program.removed) continue;
      if (program.records.fresh.length || all) program.records.draw();
      if (all) program.draw();
      else later ||= !program.ended;
    }
    if (later && !this.timer) this.timer = setTimeout(() => { this.timer = 0; this.waiting ||= requestAnimationFrame(this.frame); }, DRAW_EVERY_MS);
  }

  connectionLost() {
    for (const program of this.programs.values()) if (!program.ended) program.takeEnd("ended, as the connection was lost");
  }
}
