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

/** Sends an actor a message without the fields that its kind reads, until it is in quarantine. */
export const quarantineActor = async (
  service: Harness,
  of: Address,
  message = "Describe"
): Promise<void> => {
  const { system } = nodeOf(service, of)
  for (;;) {
    const failure = await Effect.runPromise(Effect.flip(system.ask(of, { _tag: message })))
    if (failure._tag === "Quarantined") return
    if (failure._tag !== "ActorDefect") throw new Error(`it failed as ${failure._tag}`)
  }
}

/** {@link quarantineActor} of an open mailbox. */
export const quarantineMailbox = async (service: Harness, name: string): Promise<Address> => {
  const of = address("mailbox", name)
  await quarantineActor(service, of)
  return of
}
