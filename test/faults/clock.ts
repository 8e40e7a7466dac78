/** Wall clocks of services, which a test can shift while they run. */
import { renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { asAdmin, parseXml, pathOf, postXml, send } from "../e2e/client.ts"
import { eventually, publicUrl, temporaryFolder } from "../e2e/process.ts"

const appliedWithinMs = 120_000
/** A service whose clock differs by less from the expected time has that time. */
const toleranceMs = 20 * 60_000

/** The clock of one service, over all its restarts. */
export class WallClock {
  /** Difference from the true time, ms. */
  offsetMs = 0
  /** The largest difference so far. */
  offsetMaxMs = 0
  private readonly file = join(temporaryFolder(), "clock")

  constructor() {
    writeFileSync(this.file, "0")
  }

  /** Environment of a service with this clock. */
  get env(): Readonly<Record<string, string>> {
    const script = fileURLToPath(new URL("clock.mjs", import.meta.url))
    return { NODE_OPTIONS: `--import=${script}`, CLOCK_FILE: this.file }
  }

  set(offMs: number): void {
    this.offsetMs = offMs
    this.offsetMaxMs = Math.max(this.offsetMaxMs, offMs)
    // The rename is atomic, so the service never reads a partial file.
    writeFileSync(`${this.file}.new`, String(offMs))
    renameSync(`${this.file}.new`, this.file)
  }

  /** Waits until a service with this clock has the shifted time. */
  async waitUntilApplied(url: string): Promise<void> {
    await eventually(appliedWithinMs, "the clock is set", async () => {
      // The time of the page is that of the responding node.
      const body = `<cabinet><mailbox href="${publicUrl}/mailboxes/clock"/></cabinet>`
      const made = await postXml(url, "/cabinets", body, asAdmin).catch(() => undefined)
      if (made?.status !== 201) return undefined
      const path = pathOf(made.headers.get("location"))
      const page = await send(url, path, { headers: asAdmin }).catch(() => undefined)
      if (page?.status !== 200) return undefined
      const [time = ""] = (parseXml(page.text).attributes["time"] ?? "").split("~")
      return Math.abs(Date.parse(time) - (Date.now() + this.offsetMs)) < toleranceMs || undefined
    })
  }
}
