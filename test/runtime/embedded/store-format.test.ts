/** A store of another format is refused: the operator learns what to do, and nothing changes. */
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { backendFailed } from "../../../deploy/backend/index.ts"
import { exitCodes } from "../../../deploy/command-failure.ts"
import { StoreFormatUnsupported } from "../../../runtime/actor/errors.ts"
import { SHARDS } from "../../../runtime/actor/index.ts"
import { createAcknowledged, databasePath,
  openDatabase } from "../../../runtime/embedded/engine/index.ts"
import { engineNames } from "../../../runtime/embedded/index.ts"
import { newFolder, openingFailure } from "./folders.ts"

/** A data folder as the version before this one wrote it. */
const oldFolder = async (engine: typeof engineNames[number], format: string) => {
  const folder = await newFolder(engine)
  createAcknowledged(folder)
  const database = await openDatabase(folder, engine, true)
  const rows = {
    "actor/mailbox/alice": "1 0 1\n{}",
    "meta/commits": "1",
    "meta/format": format,
    "wake/007/mailbox/alice": "1"
  }
  await database.write(
    Object.entries(rows).map(([key, value]) => ({
      type: "put",
      key: Buffer.from(key),
      value: Buffer.from(value)
    }))
  )
  await database.close()
  return folder
}

describe.each(engineNames)("a store of another format, %s", (engine) => {
  it.each([
    JSON.stringify({ version: 1, shards: SHARDS }),
    JSON.stringify({ version: 2, shards: SHARDS }),
    JSON.stringify({ version: 3, shards: SHARDS + 1 }),
    "unreadable"
  ])("is refused with 78: %s", async (format) => {
    const folder = await oldFolder(engine, format)
    const before = await readFile(join(folder, "acknowledged"))
    const failure = await openingFailure(folder)
    if (!(failure instanceof StoreFormatUnsupported)) throw failure
    const { exitCode, message } = backendFailed(folder, failure)
    expect(exitCode).toBe(exitCodes.configuration)
    expect(message).toBe(
      `${folder} cannot be opened: its store has format ${format}, and this version reads ` +
        `format {"version":3,"shards":${SHARDS}}. Run the version that wrote the store, which ` +
        "can export it (`restante backup <file>`), or start with an empty store (another " +
        "DATA_DIR or NATS_URL)"
    )
    expect(await readFile(join(folder, "acknowledged"))).toEqual(before)
    expect((await readdir(databasePath(folder))).length).toBeGreaterThan(0)
  })
})
