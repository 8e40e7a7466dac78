/** `restante watch`: what comes into a mailbox, as it comes. */
import { Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { type StreamListener, watchMailbox } from "../stream.ts"
import { mailboxArgument, mailboxFlags, mailboxOf } from "./mailbox.ts"
import { endWithReader, jsonFlag, plain } from "./output.ts"

const listener = (json: boolean): StreamListener => ({
  received: (one) => {
    const { description, received, url } = one
    const line = json ? JSON.stringify(one) : [received, description, url].map(plain).join("\t")
    process.stdout.write(`${line}\n`)
  },
  answers: (does) => {
    const text = does ? "The service answers again." : "The service does not answer; trying again."
    process.stderr.write(`${text}\n`)
  }
})

export const watchCommand = Command.make(
  "watch",
  {
    ...mailboxFlags,
    mailbox: mailboxArgument,
    since: Flag.String("since").pipe(
      Flag.withMetavar("time"),
      Flag.withDescription("Only what was received since, such as 2026-07-01T00:00:00Z"),
      Flag.optional
    ),
    json: jsonFlag("One JSON object a line")
  },
  Effect.fnUntraced(function*({ json, mailbox, since, ...flags }) {
    const { path, remote } = yield* mailboxOf(mailbox, flags)
    endWithReader()
    if (process.stderr.isTTY) yield* Console.error("Watching; end with Ctrl-C.")
    yield* watchMailbox(remote, path, Option.getOrUndefined(since), listener(json))
  })
).pipe(Command.withDescription("Print what is in a mailbox, and what comes into it"))
