/** The mailbox that a command is told: its name, its URI, or its secret URI. */
import { Effect, Option, type Redacted } from "effect"
import { Argument, Flag } from "effect/cli"
import { type CommandFailed, exitCodes } from "../failure.ts"
import { byPassword, byToken, failed, type RemoteService } from "../remote.ts"
import { accountFlags, type RemoteFlags, serviceLocation } from "./remote.ts"

/** Flags of commands that read a mailbox. */
export const mailboxFlags = {
  ...accountFlags,
  password: Flag.Redacted("password").pipe(
    Flag.withDescription("Password of the mailbox"),
    Flag.optional
  )
}

export const mailboxArgument = Argument.String("mailbox").pipe(
  Argument.withDescription("Its URI, with or without the secret part, or its name")
)

/** The values of these flags. */
export interface MailboxFlags extends RemoteFlags {
  readonly password: Option.Option<Redacted.Redacted>
}

/** Where a mailbox is, or what belongs to it, and as whom it is asked. */
export interface MailboxLocation {
  readonly remote: RemoteService
  readonly path: string
}

/** What a URI may name. */
export interface Named {
  readonly expected: string
  /** Of its path. */
  readonly pattern: RegExp
}

const mailboxes: Named = {
  expected: "the URI or the name of a mailbox",
  pattern: /^\/mailboxes\/[^/]+$/
}

/**
 * The mailbox of a URI or a name. Unless it was said where the service is, a URI says so itself;
 * a token of the environment is for no other service than the one that was said.
 */
export const mailboxOf = Effect.fnUntraced(function*(
  given: string,
  { password: secret, ...flags }: MailboxFlags,
  { expected, pattern }: Named = mailboxes
): Effect.fn.Return<MailboxLocation, CommandFailed> {
  const password = Option.getOrUndefined(secret)
  const place = yield* serviceLocation(flags, "account")
  const isName = /^[a-z0-9][a-z0-9-]{0,63}$/.test(given)
  const uri = isName ? `${place.baseUrl}/mailboxes/${given}` : given
  const { origin, pathname: path, protocol } = URL.canParse(uri)
    ? new URL(uri)
    : { origin: "", pathname: "", protocol: "" }
  if (!/^https?:$/.test(protocol) || !pattern.test(path)) {
    return yield* failed(`expected ${expected}`, exitCodes.usage)
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
