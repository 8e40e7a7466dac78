/**
 * Preloaded into the service (`NODE_OPTIONS=--import=…`): shifts its wall clock, and that of its
 * workers, by the ms in the file CLOCK_FILE. Timers and the monotonic clock continue unchanged, as
 * when somebody sets a machine's clock.
 */
import { readFileSync } from "node:fs"

const readMs = 50
const file = process.env.CLOCK_FILE ?? ""
const RealDate = Date
let offMs = 0

const readOffset = () => {
  const read = Number(readFileSync(file, "utf8"))
  if (Number.isFinite(read)) offMs = read
}
readOffset()
setInterval(readOffset, readMs).unref()

globalThis.Date = class Date extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(RealDate.now() + offMs)
    else super(...args)
  }

  static now() {
    return RealDate.now() + offMs
  }
}
