/** Two members talk; a third one follows the room. */
import { memory, startNode } from "@restante/runtime"
import { chatRoom } from "./index.ts"

const node = await startNode({ actors: [chatRoom], store: memory() })
const room = chatRoom("kitchen")
console.log(await node.ask(room, { _tag: "Enter", name: "ann" }))
console.log(await node.ask(room, { _tag: "Enter", name: "ben" }))
await node.ask(room, { _tag: "Say", name: "ann", text: "Tea?", key: "ann-1" })
await node.ask(room, { _tag: "Say", name: "ben", text: "Yes!", key: "ben-1" })
for await (const { item, n } of node.log(room)) {
  console.log(`${item.name}: ${item.text}`)
  if (n === 2) break
}
console.log(await node.ask(room, { _tag: "Leave", name: "ann" }))
await node.stop()
