/** `restante watch`: what comes into a mailbox, as it comes. */
import { Console, Effect, Option, type Redacted } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type CommandFailed, exitCodes } from "../failure.ts"
import { byPassword, byToken, failed, type Remote } from "../remote.ts"
import { type Listener, watchMailbox } from "../stream.ts"
import { endWithReader, plain } from "./output.ts"
import { accountFlags, placeOf, type RemoteFlags } from "./remote.ts"

interface Mailbox {
  readonly remote: Remote
  readonly path: string
}

/**
 * The mailbox of a URI or a name. Unless it was said where the service is, a URI says so itself;
 * a token of the environment is for no other service than the one that was said.
 */
const mailboxOf = Effect.fnUntraced(function*(
  given: string,
  flags: RemoteFlags,
  password: Redacted.Redacted | undefined
): Effect.fn.Return<Mailbox, CommandFailed> {
  const place = yield* placeOf(flags, "account")
  const isName = /^[a-z0-9][a-z0-9-]{0,63}$/.test(given)
  const uri = isName ? `${place.baseUrl}/mailboxes/${given}` : given
  const { origin, pathname: path, protocol } = URL.canParse(uri)
    ? new URL(uri)
    : { origin: "", pathname: "", protocol: "" }
  if (!/^https?:$/.test(protocol) || !/^\/mailboxes\/[^/]+$/.test(path)) {
    return yield* failed("expected the URI or the name of a mailbox", exitCodes.usage)
  }
  const baseUrl = place.isGiven ? place.baseUrl : origin
  const isElsewhere = baseUrl !== place.baseUrl
  const token = isElsewhere ? Option.getOrUndefined(flags.token) : place.token
  if (password !== undefined) {
    return { remote: { baseUrl, authorization: byPassword(password) }, path }
  }
  // A secret URI needs nothing else.
  const authorization = token === undefined || path.includes("~") ? undefined : byToken(token)
  return { remote: { baseUrl, authorization }, path }
})

const listener: Listener = {
  received: ({ description, received, url }) => {
    process.stdout.write(`${[received, description, url].map(plain).join("\t")}\n`)
  },
  answers: (does) => {
    const text = does ? "The service answers again." : "The service does not answer; trying again."
    process.stderr.write(`${text}\n`)
  }
}

export const watchCommand = Command.make(
  "watch",
  {
    ...accountFlags,
    mailbox: Argument.String("mailbox").pipe(
      Argument.withDescription("Its URI, with or without the secret part, or its name")
    ),
    since: Flag.String("since").pipe(
      Flag.withMetavar("time"),
      Flag.withDescription("Only what was received since, such as 2026-07-01T00:00:00Z"),
      Flag.optional
    ),
    password: Flag.Redacted("password").pipe(
      Flag.withDescription("Password of the mailbox"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function*({ mailbox, password, since, ...flags }) {
    const { path, remote } = yield* mailboxOf(mailbox, flags, Option.getOrUndefined(password))
    endWithReader()
    if (process.stderr.isTTY) yield* Console.error("Watching; end with Ctrl-C.")
    yield* watchMailbox(remote, path, Option.getOrUndefined(since), listener)
  })
).pipe(Command.withDescription("Print what is in a mailbox, and what comes into it"))
