// Stands for @vscode/spdlog, which would have to be compiled: VS Code's logs and output channels go through it.
/* global exports, require */
"use strict";

const { appendFileSync, mkdirSync } = require("node:fs");
const { dirname } = require("node:path");

const LEVELS = ["trace", "debug", "info", "warn", "error", "critical"];

class Logger {
  constructor(file) {
    this.file = file;
    this.level = LEVELS.indexOf("info");
    this.bare = false;
    mkdirSync(dirname(file), { recursive: true });
  }

  write(level, message) {
    if (level < this.level) return;
    const name = LEVELS[level] === "warn" ? "warning" : LEVELS[level];
    const time = new Date().toISOString().replace("T", " ").replace("Z", "");
    appendFileSync(this.file, this.bare ? message : `${time} [${name}] ${message}\n`);
  }

  getLevel() {
    return this.level;
  }

  setLevel(level) {
    this.level = level;
  }

  clearFormatters() {
    this.bare = true;
  }

  setPattern() {}
  flush() {}
  drop() {}
}

LEVELS.forEach((name, level) => {
  Logger.prototype[name] = function (message) {
    this.write(level, message);
  };
});

const createLogger = async (_name, file) => new Logger(file);

exports.version = 0;
exports.setLevel = () => {};
exports.setFlushOn = () => {};
exports.Logger = Logger;
exports.createRotatingLogger = createLogger;
exports.createAsyncRotatingLogger = createLogger;
