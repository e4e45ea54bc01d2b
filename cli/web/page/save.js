// Files for the user: a result as JSON, or as an HTML page that needs nothing else.
import {element} from "./machines.js";

const SAVED_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

const download = (name, type, text) => {
  const address = URL.createObjectURL(new Blob([text], {type}));
  const link = element("a", {href: address, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
};

export const saveJson = (name, value) => download(`${name}.json`, "application/json", JSON.stringify(value, null, 2));

/** A copy without controls; canvases become images. */
const still = (node) => {
  const copy = node.cloneNode(true);
  const pictures = [...node.querySelectorAll("canvas")].map((canvas) => canvas.toDataURL());
  copy.querySelectorAll("canvas").forEach((canvas, i) =>
    canvas.replaceWith(element("img", {src: pictures[i], alt: canvas.getAttribute("aria-label")})));
  copy.querySelectorAll("th button").forEach((button) => button.replaceWith(button.textContent));
  copy.querySelectorAll("button, input, select, iframe, [hidden]").forEach((control) => control.remove());
  return copy;
};

/** `pictures` are SVGs as text, which cannot be copied from their frames. */
export const saveHtml = async (name, title, nodes, pictures = []) => {
  const style = await (await fetch("/page.css")).text();
  const page = document.implementation.createHTMLDocument(title);
  const heading = page.createElement("h1");
  heading.textContent = title;
  const main = page.createElement("main");
  main.append(heading, ...nodes.map((node) => page.adoptNode(still(node))));
  for (const picture of pictures) {
    const image = page.createElement("img");
    image.src = `data:image/svg+xml;base64,${btoa(Array.from(new TextEncoder().encode(picture), (byte) => String.fromCharCode(byte)).join(""))}`;
    image.alt = "flame graph";
    main.append(image);
  }
  page.body.append(main);
  // The rules are text here: this page's policy would refuse a style element, in a document of its own, too.
  download(`${name}.html`, "text/html", `<!DOCTYPE html>
<html lang="en"><head><meta http-equiv="Content-Security-Policy" content="${SAVED_POLICY}"><meta charset="utf-8">
${page.querySelector("title").outerHTML}<style>
${style}
img { max-width: 100%; }
main .scroll, main pre { max-height: none; }
</style></head>${page.body.outerHTML}</html>
`);
};
