/** A node with the examples in a process of its own: `process.js NAME OUTSIDE SERVER...`. */
import { startNode } from "@restante/runtime"
import { nats } from "@restante/runtime/nats"
import { exampleActors } from "./actors.ts"

const [name = "", outside = "", ...servers] = process.argv.slice(2)

await startNode({ actors: exampleActors(outside).all, store: nats(servers, { node: name }) })
process.stdout.write("ready\n")
