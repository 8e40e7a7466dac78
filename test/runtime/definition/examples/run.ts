import { memory, startNode } from "../../../../runtime/main.ts"
import { counter } from "./counter.ts"

export const program = async (): Promise<number> => {
  const node = await startNode({ actors: [counter], store: memory() })
  await node.ask(counter("visits"), { _tag: "Add", by: 2 })
  const visits = await node.ask(counter("visits"), { _tag: "Add", by: 3 })
  await node.stop()
  return visits // 5: a number, by the type of the cell
}
