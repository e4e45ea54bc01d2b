// The page of `ringside web`: its connection, and the parts that events go to. All text that comes from
// guests enters by textContent only.
import {Machines} from "./machines.js";
import {Programs} from "./programs.js";

const status = document.getElementById("status");

export const tellStatus = (text) => { status.textContent = text; };

/** A request to the server: its text; an Error with the server's own words. */
export const ask = async (path, body) => {
  const options = body === undefined ? {} : {method: "POST", body: JSON.stringify(body)};
  let reply;
  try {
    reply = await fetch(path, options);
  } catch {
    throw new Error("ringside web does not answer: is it still running?");
  }
  const text = await reply.text();
  if (!reply.ok) throw new Error(text.trim());
  return text;
};

const machines = new Machines(ask);
const programs = new Programs(ask, machines);

const handlers = {
  page: (event) => {
    programs.page = event.page;
    tellStatus("connected");
  },
  machines: (event) => machines.show(event),
};

const take = (data) => {
  let event;
  try {
    event = JSON.parse(data);
  } catch {
    return tellStatus("an event could not be read; the saved records have it");
  }
  (handlers[event.kind] ?? ((other) => programs.take(other)))(event);
};

// An event source would connect again by itself, as another page: what ran has ended with this one.
const events = new EventSource("/api/events");
events.onmessage = (message) => take(message.data);
events.onerror = async () => {
  events.close();
  programs.connectionLost();
  const abort = new AbortController();
  try {
    const reply = await fetch("/api/events", {signal: abort.signal});
    tellStatus(reply.ok ? "the connection was lost, and all programs ended: load the page again"
      : (await reply.text()).trim());
  } catch {
    tellStatus("ringside web does not answer: is it still running?");
  }
  abort.abort();
};
