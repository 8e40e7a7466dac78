/** An operator dims a lamp that is offline; the lamp reads that later, and reports. */
import { memory, startNode } from "@restante/runtime"
import { deviceTwin } from "./index.ts"

const node = await startNode({ actors: [deviceTwin], store: memory() })
const lamp = deviceTwin("lamp-1")
await node.ask(lamp, { _tag: "Desire", settings: { brightness: 40 }, ifVersion: 0 })
const { desired, isInSync } = await node.ask(lamp, { _tag: "Read" })
console.log("desired", desired, "in sync:", isInSync)
await node.ask(lamp, { _tag: "Report", ...desired, sequence: 1 })
console.log(await node.ask(lamp, { _tag: "Read" }))
await node.stop()
