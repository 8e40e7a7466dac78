/** Wall clocks of services, which can be set forward and back while they run. */
import { renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { asAdmin, parseXml, pathOf, postXml, send } from "../e2e/client.ts"
import { eventually, publicUrl, temporaryFolder } from "../e2e/process.ts"

const noticedWithinMs = 30_000
/** A service whose clock is so near to what was set has it. */
const nearMs = 20 * 60_000

/** The clock of one service, over all its starts. */
export class WallClock {
  /** What it differs from the true time, ms. */
  offMs = 0
  /** The most that it ever was ahead. */
  mostMs = 0
  private readonly file = join(temporaryFolder(), "clock")

  constructor() {
    writeFileSync(this.file, "0")
  }

  /** What a service needs in order to have this clock. */
  get env(): Readonly<Record<string, string>> {
    const script = fileURLToPath(new URL("clock.mjs", import.meta.url))
    return { NODE_OPTIONS: `--import=${script}`, CLOCK_FILE: this.file }
  }

  set(offMs: number): void {
    this.offMs = offMs
    this.mostMs = Math.max(this.mostMs, offMs)
    // Nobody reads half of it.
    writeFileSync(`${this.file}.new`, String(offMs))
    renameSync(`${this.file}.new`, this.file)
  }

  /** Waits until a service that has this clock tells the time that was set. */
  async noticed(url: string): Promise<void> {
    await eventually(noticedWithinMs, "the clock is set", async () => {
      // Whose time is that of the node that is asked, whatever there is in it.
      const body = `<cabinet><mailbox href="${publicUrl}/mailboxes/clock"/></cabinet>`
      const made = await postXml(url, "/cabinets", body, asAdmin).catch(() => undefined)
      if (made?.status !== 201) return undefined
      const path = pathOf(made.headers.get("location"))
      const shown = await send(url, path, { headers: asAdmin }).catch(() => undefined)
      if (shown?.status !== 200) return undefined
      const [told = ""] = (parseXml(shown.text).attributes["time"] ?? "").split("~")
      return Math.abs(Date.parse(told) - (Date.now() + this.offMs)) < nearMs || undefined
    })
  }
}
