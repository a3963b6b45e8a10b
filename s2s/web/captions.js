// What both sides said, a line each, in the order in which they began.
class Caption {
  constructor(list, className) {
    this.list = list;
    this.line = document.createElement("p");
    this.line.className = `caption ${className}`;
    this.text = document.createElement("span");
    this.line.append(this.text);
    list.append(this.line);
  }

  wait(text) {
    if (this.text.textContent) return;
    this.line.classList.add("waiting");
    this.set(text, true);
  }

  add(text) {
    if (this.line.classList.contains("waiting")) this.set("");
    this.set(this.text.textContent + text);
  }

  set(text, waiting = false) {
    this.line.classList.toggle("waiting", waiting);
    this.text.textContent = text;
    this.list.scrollTop = this.list.scrollHeight;
  }

  note(text) {
    const note = this.line.querySelector("small") ?? this.line.appendChild(document.createElement("small"));
    note.textContent = text;
  }
}

export class Captions {
  constructor(list) {
    this.list = list;
    this.captions = new Map();
  }

  user(item) {
    return this.of(item, "user");
  }

  agent(item) {
    return this.of(item, "agent");
  }

  known(item) {
    return this.captions.get(item);
  }

  drop(item) {
    this.known(item)?.line.remove();
    this.captions.delete(item);
  }

  of(item, className) {
    if (!this.captions.has(item)) this.captions.set(item, new Caption(this.list, className));
    return this.captions.get(item);
  }
}
