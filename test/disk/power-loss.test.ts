/**
 * Loss of power at any moment of a busy store: nothing acknowledged is lost, whether the disk has
 * only the flushed data or any part of the rest too.
 */
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import { engineNames, inspect } from "../../runtime/embedded/index.ts"
import { note } from "../results.ts"
import { acknowledgedIn, verify } from "../runtime/embedded/acknowledged.ts"
import { newFolder, withStore } from "../runtime/embedded/folders.ts"
import { compileChild, startChild } from "../runtime/embedded/processes.ts"
import { FaultyDisk } from "./faults.ts"
import { PowerLossReplay, type SurvivingChanges } from "./power-loss-replay.ts"
import { randomOf } from "./seeds.ts"

const long = process.env["TEST_LONG"] === "1"
const CUTS = long ? 400 : 10
/** Printed before the process is killed, so that the store compacts the log meanwhile. */
const LINES = 60
const losses: ReadonlyArray<SurvivingChanges> = [
  { data: "none", names: "none" },
  { data: "some", names: "none" },
  { data: "some", names: "all" },
  { data: "none", names: "all" }
]

let child = ""
beforeAll(() => {
  child = compileChild()
})

/** The calls of a busy store on its disk, until it was killed. */
const recorded = async (folder: string): Promise<Buffer> => {
  const faults = new FaultyDisk(folder, { records: true })
  try {
    const running = startChild(child, folder, "commit", faults.env)
    await running.printed(LINES)
    await running.kill()
    return await readFile(faults.record)
  } finally {
    faults.close()
  }
}

const timeout = long ? 1_200_000 : 120_000

describe.each(engineNames)("loss of power, %s", (engine) => {
  it(`loses nothing acknowledged, at ${CUTS} moments`, { timeout }, async () => {
    const folder = await newFolder(engine)
    const record = await recorded(folder)
    const { begun, entries } = spanOf(record, folder)
    const random = randomOf(`power ${engine}`)
    const moments = Array.from({ length: CUTS }, () => begun + random() * (entries - begun))
    const power = playing(record, folder)
    let at = 0
    let acknowledged = 0
    for (const [n, moment] of moments.sort((one, other) => one - other).entries()) {
      for (; at <= moment; at++) power.step()
      const loss = losses[n % losses.length] ?? { data: "none", names: "none" }
      const copy = await newFolder()
      power.build(copy, loss, random)
      const { blobs, heads } = acknowledgedIn(power.output.split("\n").slice(0, -1))
      await withStore(copy, verify(heads, blobs)).catch((cause: unknown) => {
        throw new Error(`at entry ${at} of ${entries}, ${JSON.stringify(loss)}`, { cause })
      })
      acknowledged += heads.size + blobs.size
      if (n < losses.length) expect((await Effect.runPromise(inspect(copy))).faults).toEqual([])
      await rm(copy, { recursive: true, force: true })
    }
    expect(acknowledged).toBeGreaterThan(0)
    note({ name: `loss of power, ${engine}`, runs: 1, faults: CUTS, operations: acknowledged })
  })
})

/** Replays from the start; the file with the name of the engine already existed. */
const playing = (record: Buffer, folder: string): PowerLossReplay => {
  const power = new PowerLossReplay(record, folder)
  power.addDurable(join(folder, "engine"), readFileSync(join(folder, "engine")))
  return power
}

/** The number of entries, and the number of the one at which the store was open. */
const spanOf = (record: Buffer, folder: string) => {
  const power = playing(record, folder)
  let begun = 0
  let entries = 0
  for (; power.step(); entries++) if (power.output === "") begun = entries + 1
  return { begun, entries }
}
