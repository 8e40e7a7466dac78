import { address } from "../../../../runtime/index.ts"
import { startTestNode } from "../../../../runtime/testing/index.ts"
import { concert } from "./tickets.ts"

/** Sells a ticket, crashes, and returns what the next process answers. */
export const sellAndCrash = async (): Promise<number> => {
  const node = await startTestNode({ behaviors: [concert] })
  const jazz = address("concert", "jazz")
  await node.ask(jazz, { _tag: "Buy", buyer: "ann" })
  await node.advance(24 * 60 * 60_000) // a day passes, and nobody waits
  await node.restart()
  const sold = await node.ask<number>(jazz, { _tag: "Buy", buyer: "ben" })
  await node.stop()
  return sold
}
