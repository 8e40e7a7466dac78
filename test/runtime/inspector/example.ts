import { memory } from "../../../runtime/main.ts"
import { startInspectedNode } from "../../../runtime/inspector/index.ts"
import { auction } from "./inspected-actors.ts"

/** A node whose page is at its `inspectorUrl`, such as `http://127.0.0.1:8090/`. */
export const startForDevelopment = (port = 8090) =>
  startInspectedNode({ actors: [auction], store: memory() }, { port })
