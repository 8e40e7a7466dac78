/**
 * Loaded before the service (`NODE_OPTIONS=--import=…`): its wall clock, and that of its workers,
 * is off by what the file of CLOCK_FILE says, ms. Timers and the monotonic clock go on as they
 * are, as when somebody sets a machine's clock.
 */
import { readFileSync } from "node:fs"

const lookMs = 50
const file = process.env.CLOCK_FILE ?? ""
const RealDate = Date
let offMs = 0

const look = () => {
  const read = Number(readFileSync(file, "utf8"))
  if (Number.isFinite(read)) offMs = read
}
look()
setInterval(look, lookMs).unref()

globalThis.Date = class Date extends RealDate {
  constructor(...given) {
    if (given.length === 0) super(RealDate.now() + offMs)
    else super(...given)
  }

  static now() {
    return RealDate.now() + offMs
  }
}
