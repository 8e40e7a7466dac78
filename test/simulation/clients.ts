/** Clients: each runs its operations one after the other, as real clients do. */
import { ClientRequest } from "./requests.ts"
import { cabinetVerbs } from "./cabinets.ts"
import { contentVerbs } from "./contents.ts"
import { customerVerbs } from "./customers.ts"
import { keyedDepositVerbs } from "./keyed-deposits.ts"
import { mailboxVerbs } from "./mailboxes.ts"
import { notificationVerbs } from "./notifications.ts"
import type { Operation, Plan } from "./plan.ts"
import type { Records } from "./records.ts"
import { registrationVerbs } from "./registrations.ts"
import { sessionVerbs } from "./sessions.ts"
import type { Known, Operations, Turn } from "./operations.ts"
import type { World } from "./world.ts"

const verbsOf: Readonly<Record<string, Operations>> = {
  mailbox: { ...mailboxVerbs, ...keyedDepositVerbs },
  notification: notificationVerbs,
  registration: registrationVerbs,
  session: sessionVerbs,
  cabinet: cabinetVerbs,
  content: contentVerbs,
  customer: customerVerbs
}

/** Runs one operation; resolves when it has ended, with any outcome. */
const perform = async (turn: Turn, operation: Operation): Promise<void> => {
  const [kind = ""] = operation.resource.split("/")
  const verb = verbsOf[kind]?.[operation.verb]
  if (verb === undefined) throw new Error(`${kind} has no ${operation.verb}`)
  await verb(turn, operation)
}

/** Runs all clients of the plan; resolves when the last one has ended. */
export const runClients = async (
  world: World,
  { operations }: Plan,
  records: Records,
  known: Known
): Promise<void> => {
  const clients = new Map<number, Array<Operation>>()
  for (const operation of operations) {
    const own = clients.get(operation.client)
    if (own === undefined) clients.set(operation.client, [operation])
    else own.push(operation)
  }
  const run = async (client: number, own: ReadonlyArray<Operation>): Promise<void> => {
    const name = `client-${client}`
    const asking = new ClientRequest(world, name)
    for (const operation of own) {
      await asking.until(operation.atMs)
      world.trace.note("client", () => `${name} ${JSON.stringify(operation)}`)
      await perform({ name, asking, records, known, trace: world.trace }, operation)
    }
    records.unanswered.push(...asking.unanswered)
  }
  await Promise.all(Array.from(clients, ([client, own]) => run(client, own)))
}
