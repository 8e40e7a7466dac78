/** Mailboxes with a state that no decoder accepts, so that quarantines can be read and lifted. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Encoder } from "../../../deploy/archive/format.ts"
import { address, SHARDS } from "../../../runtime/index.ts"
import { root } from "../../bench/process.ts"
import { runProgram } from "../program.ts"
import type { Bench } from "../suite.ts"

/** Their names: one for each operation that lifts a quarantine. */
export const brokenMailboxes = ["broken", "broken-form"]

const withinMs = 60_000

const attemptsMax = 300

const pauseMs = 100

const header = {
  restante: "archive",
  format: 1,
  version: "",
  time: "2026-01-01T00:00:00Z",
  source: "embedded",
  shards: SHARDS
} as const

const parts = async function*() {
  for (const name of brokenMailboxes) {
    yield {
      _tag: "Actor",
      address: address("mailbox", name),
      head: 0,
      state: "1 {}",
      timer: undefined,
      items: [],
      removed: [],
      steady: true
    } as const
  }
}

/** Restores an archive with them into the folder of a new store. */
export const prepareBrokenMailboxes = async (dataFolder: string): Promise<void> => {
  const pieces: Array<Buffer> = []
  for await (const piece of new Encoder().encode(header, parts())) pieces.push(piece)
  const archive = `${dataFolder}.archive`
  writeFileSync(archive, Buffer.concat(pieces))
  const args = [join(root, "dist/bin/restante.js"), "restore", archive]
  const options = { cwd: root, env: { DATA_DIR: dataFolder }, withinMs }
  const { code, errors } = await runProgram(process.execPath, args, options)
  if (code !== 0) throw new Error(`restore failed: ${errors}`)
}

/** Requests each until it is in quarantine. */
export const quarantineBrokenMailboxes = async ({ origin, token }: Bench): Promise<void> => {
  const headers = { Authorization: `Bearer ${token}` }
  const statusOf = async (path: string) => {
    const { body, status } = await fetch(origin + path, { headers })
    await body?.cancel()
    return status
  }
  for (const name of brokenMailboxes) {
    for (
      let attempt = 0;
      await statusOf(`/cluster/quarantine/mailbox/${name}`) !== 200;
      attempt++
    ) {
      if (attempt === attemptsMax) throw new Error(`${name} did not get into quarantine`)
      await statusOf(`/mailboxes/${name}`)
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }
}
