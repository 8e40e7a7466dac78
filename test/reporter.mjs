/**
 * What a run of the suites prints: a line of progress every few seconds, each failure once, when it
 * happens, and the slowest files at the end. A green run fits on a page.
 */
import { relative } from "node:path"

const everyMs = 15_000
const slowestShown = 10
const failureLinesMax = 32

const seconds = (ms) => `${(ms / 1000).toFixed(0)} s`
const elapsed = (ms) => `${Math.floor(ms / 60_000)} min ${Math.floor(ms / 1000) % 60} s`

/** The first lines of an error: its message, then where it was thrown. */
const shortError = ({ message = "", stacks = [], stack = "" }) => {
  const at = stacks[0]
  const where = at === undefined
    ? stack.split("\n").find((line) => line.includes("/test/"))?.trim()
    : `at ${relative(process.cwd(), at.file)}:${at.line}:${at.column}`
  return [...message.split("\n").slice(0, failureLinesMax), ...(where === undefined ? [] : [where])]
    .map((line) => `    ${line}`).join("\n")
}

export default class ProgressReporter {
  #startedMs = performance.now()
  #files = { all: 0, done: 0 }
  #tests = { passed: 0, failed: 0, skipped: 0 }
  #running = new Set()
  #times = []
  #timer

  #say(text) {
    process.stderr.write(`${text}\n`)
  }

  #progress() {
    const { all, done } = this.#files
    const { failed, passed } = this.#tests
    const running = [...this.#running].slice(0, 4).join(", ")
    const time = elapsed(performance.now() - this.#startedMs)
    this.#say(`${time}: ${done} of ${all} files, ${passed} passed, ${failed} failed; ${running}`)
  }

  #nameOf(module) {
    return `${module.project.name} ${module.relativeModuleId}`
  }

  onTestRunStart(specifications) {
    this.#files.all = specifications.length
    this.#timer = setInterval(() => this.#progress(), everyMs)
    this.#timer.unref()
  }

  onTestModuleStart(module) {
    this.#running.add(this.#nameOf(module))
  }

  onTestCaseResult(test) {
    const { errors = [], state } = test.result()
    this.#tests[state] += 1
    if (state !== "failed") return
    this.#say(`FAILED ${this.#nameOf(test.module)} > ${test.fullName}`)
    for (const error of errors) this.#say(shortError(error))
  }

  onTestModuleEnd(module) {
    const name = this.#nameOf(module)
    this.#running.delete(name)
    this.#files.done += 1
    this.#times.push({ name, ms: module.diagnostic().duration })
    for (const error of module.errors()) {
      this.#say(`FAILED ${name}: the file could not be run\n${shortError(error)}`)
    }
  }

  onTestRunEnd(_modules, unhandledErrors) {
    clearInterval(this.#timer)
    for (const error of unhandledErrors) this.#say(`FAILED outside of a test\n${shortError(error)}`)
    this.#progress()
    const slowest = this.#times.sort((one, other) => other.ms - one.ms).slice(0, slowestShown)
    this.#say(`Slowest: ${slowest.map(({ ms, name }) => `${name} ${seconds(ms)}`).join(", ")}`)
  }
}
