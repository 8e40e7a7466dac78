/** Makes actors fail on purpose until they are in quarantine. */
import { Effect } from "effect"
import type { Service } from "../../http/pipeline/service.ts"
import { type Address, address, shardOf } from "../../runtime/index.ts"
import type { Harness } from "./harness.ts"

/** The service of the node that owns an actor. */
export const nodeOf = ({ service, services }: Harness, of: Address): Service => {
  const { owners } = service.system.cluster()
  const found = services.find(({ system }) => system.cluster().self === owners[shardOf(of)])
  if (found === undefined) throw new Error("nobody owns it")
  return found
}

/** Sends an open mailbox a message that no decoder accepts, until it is in quarantine. */
export const quarantineMailbox = async (service: Harness, name: string): Promise<Address> => {
  const of = address("mailbox", name)
  const { system } = nodeOf(service, of)
  for (;;) {
    const failure = await Effect.runPromise(Effect.flip(system.ask(of, { _tag: "Describe" })))
    if (failure._tag === "Quarantined") return of
    if (failure._tag !== "ActorDefect") throw new Error(`it failed as ${failure._tag}`)
  }
}
