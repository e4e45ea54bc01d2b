// The table of machines, and the lists of one of them.

const LISTS = [["ps", "Processes"], ["dmesg", "Log"], ["why", "Why"], ["netstat", "Sockets"], ["mounts", "Mounts"],
  ["modules", "Modules"]];
const MOST_ROWS = 2000;

export const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

const seconds = (nanoseconds) => (Number(nanoseconds) / 1e9).toFixed(2);

const sizeText = (bytes) => bytes === null || bytes === undefined ? "" : `${Math.round(bytes / 1048576)} MiB`;

/** One value of a list as text. */
const plain = (value) => {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(plain).join(" ");
  if (typeof value !== "object") return String(value);
  if ("address" in value) return `${value.address}:${value.port}`;
  return Object.values(value).map(plain).join(" ");
};

const COLUMNS = {
  ps: [["PID", (row) => row.pid], ["PPID", (row) => row.ppid], ["UID", (row) => row.uid], ["State", (row) => row.state],
    ["CPU s", (row) => seconds(row.cpu_ns)], ["Memory", (row) => sizeText(row.resident_bytes)],
    ["Command", (row) => row.command?.length ? row.command.join(" ") : `[${row.name}]`]],
  dmesg: [["Time", (row) => seconds(row.time_ns)], ["Level", (row) => row.level], ["Text", (row) => row.text]],
};

export const tableOf = (columns, rows, label) => {
  const head = element("tr", {}, ...columns.map(([title]) => element("th", {scope: "col"}, title)));
  const body = element("tbody");
  for (const row of rows) body.append(element("tr", {}, ...columns.map(([, text]) => element("td", {}, plain(text(row))))));
  return element("table", {"aria-label": label}, element("thead", {}, head), body);
};

export class Machines {
  constructor(ask) {
    this.ask = ask;
    this.body = document.querySelector("#machines tbody");
    this.note = document.getElementById("machines-note");
    this.panel = document.getElementById("machine");
    this.rows = new Map();
    this.chosen = new Set();
    this.shown = null;
    this.asked = 0;
    document.getElementById("machine-close").onclick = () => this.open(null);
    for (const [command, title] of LISTS) {
      const button = element("button", {type: "button", "aria-pressed": "false"}, title);
      button.onclick = () => this.list(command);
      button.dataset.command = command;
      document.getElementById("machine-lists").append(button);
    }
  }

  targets() { return [...this.chosen]; }

  /** Rows stay the same elements, so that a tick or the focus is not lost. */
  show({machines, trouble}) {
    this.note.textContent = trouble || (machines.length ? "" : "no virtual machine that we may see runs on this host");
    const seen = new Set();
    for (const machine of machines) {
      const id = machine.attach ?? `${machine.name} ${machine.pid}`;
      seen.add(id);
      if (!this.rows.has(id)) this.rows.set(id, this.makeRow(id, machine));
      this.fill(this.rows.get(id), machine);
    }
    for (const [id, row] of this.rows) {
      if (seen.has(id)) continue;
      row.remove();
      this.rows.delete(id);
      this.chosen.delete(id);
    }
    if (this.rows.size === 1 && !this.touched) this.choose([...this.rows.keys()][0], true);
  }

  choose(id, on) {
    const box = this.rows.get(id).querySelector("input");
    if (box.disabled) return;
    box.checked = on;
    on ? this.chosen.add(id) : this.chosen.delete(id);
  }

  makeRow(id, machine) {
    const box = element("input", {type: "checkbox", "aria-label": `trace ${machine.name}`});
    box.disabled = !machine.attach;
    box.onchange = () => { this.touched = true; this.choose(id, box.checked); };
    const name = element("button", {type: "button"}, machine.name);
    name.disabled = !machine.attach;
    name.onclick = () => this.open(machine);
    const row = element("tr", {}, element("td", {}, box), element("td", {}, name));
    for (let i = 0; i < 6; ++i) row.append(element("td"));
    this.body.append(row);
    return row;
  }

  fill(row, machine) {
    const why = machine.attach ? machine.why ?? "not looked at yet" : machine.obstacle ?? "it cannot be attached to";
    const texts = [machine.state ?? "", machine.vcpus ?? "", sizeText(machine.memory),
      (machine.load ?? []).map((load) => load.toFixed(2)).join(" "), machine.kernel ?? machine.release ?? "", why];
    texts.forEach((text, i) => {
      const cell = row.cells[i + 2];
      if (cell.textContent !== String(text)) cell.textContent = text;
    });
  }

  open(machine) {
    this.shown = machine;
    this.panel.hidden = machine === null;
    if (machine === null) return;
    document.getElementById("machine-title").textContent = machine.name;
    this.list("ps");
  }

  async list(command) {
    const note = document.getElementById("machine-note"), body = document.getElementById("machine-body");
    for (const button of document.querySelectorAll("#machine-lists button"))
      button.setAttribute("aria-pressed", String(button.dataset.command === command));
    const asked = ++this.asked;
    note.textContent = "looking";
    let answer;
    try {
      answer = JSON.parse(await this.ask(`/api/look?command=${command}&target=${encodeURIComponent(this.shown.attach)}`));
    } catch (error) {
      answer = error;
    }
    if (asked !== this.asked) return;
    body.replaceChildren();
    note.textContent = answer instanceof Error ? answer.message : this.fillList(body, command, answer);
  }

  /** Shows the list; the note above it. */
  fillList(body, command, answer) {
    if (command === "why") {
      body.append(...this.health(answer.why));
      return "";
    }
    const machine = answer[command][0];
    const name = Object.keys(machine).find((key) => Array.isArray(machine[key]) && key !== "notes");
    const rows = command === "dmesg" ? [...machine[name]].reverse() : machine[name];
    const columns = COLUMNS[command] ?? Object.keys(rows[0] ?? {}).map((key) => [key.replaceAll("_", " "), (row) => row[key]]);
    body.append(tableOf(columns, rows.slice(0, MOST_ROWS), command));
    const cut = rows.length > MOST_ROWS ? `${MOST_ROWS} of ${rows.length} rows` : `${rows.length} rows`;
    return [cut + (command === "dmesg" ? ", the latest first" : ""), ...machine.notes].join("; ");
  }

  health(report) {
    const parts = [element("ul", {}, ...report.causes.map((cause) => element("li", {}, cause.text)))];
    const tasks = (title, list) => {
      if (!list?.length) return;
      parts.push(element("h3", {}, title), tableOf([["PID", (row) => row.pid], ["Name", (row) => row.name],
        ["State", (row) => row.state], ["CPU", (row) => row.cpu], ["Stack", (row) => (row.stack ?? []).map((frame) => frame.symbol).join(" < ")]],
      list, title));
    };
    tasks("CPUs run", report.cpus?.filter((cpu) => cpu.running).map((cpu) => ({cpu: cpu.cpu, ...cpu.running})));
    tasks("Tasks in state D", report.waiting);
    tasks("Holders of locks that they wait for", report.lock_holders);
    tasks("Tasks that want a CPU and get none", report.starving);
    return parts;
  }
}
