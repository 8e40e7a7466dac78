/** `restante account …`: the accounts of a running service. */
import { Console, Effect, Option, Redacted } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { once } from "node:events"
import { type CommandFailed, failed } from "../command-failure.ts"
import { adminFlags, jsonFlag, switchFlag, textArgument, textFlag } from "./flags.ts"
import { AccountText, MailboxText } from "./resource-name/index.ts"
import { asAdmin, call, ownResourceOf, type ServiceLocation, wrongUsage } from "./service/index.ts"
import { jsonText, plain, printJson, printLine, printOutcome, table } from "./terminal.ts"

const accountsOfPage = 1000

const account = textArgument("name", "Name or URI of the account").pipe(
  Argument.withSchema(AccountText)
)

/** The service for an admin, and the name of one of its accounts. */
const locateAccount = Effect.fnUntraced(function*(
  flags: Parameters<typeof asAdmin>[0],
  text: string
) {
  const service = yield* asAdmin(flags)
  const { segments: [name = text] } = yield* ownResourceOf(service, text, "account")
  return { service, name }
})

const common = { ...adminFlags, account, json: jsonFlag() }

/** Prints a new token. Standard output has only the token, so that scripts can read it. */
const printToken = Effect.fnUntraced(function*(
  account: string,
  token: string,
  json: boolean,
  more: Readonly<Record<string, string>> = {}
) {
  if (json) return yield* printJson({ account, token, ...more })
  yield* Console.error(`Token of ${account}, shown only this once:`)
  yield* Console.log(plain(token))
})

/**
 * Opens a mailbox as the new account, and chooses it for the account's failure reports. It takes
 * deposits of accounts only: a stranger could imitate a report.
 */
const openReportsMailbox = (
  service: ServiceLocation,
  account: string,
  mailbox: string
): Effect.Effect<void, CommandFailed> =>
  call(service, async (client) => {
    await client.openMailbox({ name: mailbox, title: "Failure reports", deposit: "accounts" })
    await client.accounts.chooseReportsMailbox(account, mailbox)
  }).pipe(
    Effect.mapError(({ problem }) =>
      failed(
        `the account ${account} exists, but its failure reports may go to no mailbox: ${problem}`,
        `look at /accounts/${account}, and choose ${mailbox} or another mailbox there`
      )
    )
  )

/** Where the failures of a new account are reported: nowhere by a service of an earlier version. */
const reportsText = (account: string, mailbox: string | undefined): string =>
  mailbox === undefined
    ? `Failures of what ${account} sends are reported nowhere: choose a mailbox at ` +
      `/accounts/${account}.`
    : `Failures of what ${account} sends are reported to its mailbox /mailboxes/${plain(mailbox)}.`

const add = Command.make(
  "add",
  {
    ...common,
    role: Flag.Literals("role", ["admin", "quotes", "customers"]).pipe(
      Flag.withDescription("A role of the account; may be repeated"),
      Flag.atLeast(0)
    ),
    reports: Flag.String("reports-mailbox").pipe(
      Flag.withMetavar("name|uri"),
      Flag.withDescription(
        "The mailbox for reports of deliveries that fail for good; by default at random"
      ),
      Flag.withSchema(MailboxText),
      Flag.optional
    ),
    none: switchFlag("no-reports", "Open no mailbox for its failure reports")
  },
  Effect.fnUntraced(function*({ account, json, none, reports, role, ...flags }) {
    if (none && Option.isSome(reports)) {
      return yield* wrongUsage(
        "there are both --reports-mailbox and --no-reports",
        "give one of them, or none for a mailbox with a random name"
      )
    }
    const { name, service } = yield* locateAccount(flags, account)
    const mailbox = Option.isNone(reports)
      ? undefined
      : (yield* ownResourceOf(service, reports.value, "mailbox")).segments[0]
    const options = { reports: !none && mailbox === undefined }
    const { reportsMailbox, token } = yield* call(
      service,
      ({ accounts }) => accounts.open(name, role, options)
    )
    const reported = mailbox ?? reportsMailbox
    yield* printToken(
      name,
      token,
      json,
      reported === undefined ? {} : { "failure-reports": reported }
    )
    if (mailbox === undefined) {
      return json ? undefined : yield* Console.error(reportsText(name, reportsMailbox))
    }
    const own = { ...service, account: name, token: Redacted.make(token) }
    yield* openReportsMailbox(own, name, mailbox)
  })
).pipe(Command.withDescription("Create an account and print its token"))

const list = Command.make(
  "list",
  { ...adminFlags, json: jsonFlag("One JSON object a line") },
  Effect.fnUntraced(function*({ json, ...flags }) {
    yield* call(yield* asAdmin(flags), async ({ accounts }) => {
      for await (const { name, roles } of accounts.list({ pageSize: accountsOfPage })) {
        printLine(
          json
            ? jsonText({ name, role: roles })
            : [name, roles.join(",")].map(plain).join("\t").trimEnd()
        )
      }
    })
  })
).pipe(Command.withDescription("List the accounts and their roles"))

const remove = Command.make(
  "remove",
  {
    ...common,
    owned: switchFlag("with-owned", "Delete everything that the account owns, too")
  },
  Effect.fnUntraced(function*({ account, json, owned, ...flags }) {
    const removal = owned ? { owned: "delete" as const } : {}
    const { name, service } = yield* locateAccount(flags, account)
    yield* call(service, ({ accounts }) => accounts.remove(name, removal))
    const message = owned
      ? `Account ${name} is removed. The service is deleting what it owned.`
      : `Account ${name} is removed.`
    yield* printOutcome(json, { removed: name }, message)
  })
).pipe(Command.withDescription("Remove an account; --with-owned: and everything that it owns"))

/** Characters that the last line of an export has at most. */
const lastLineChars = 200

/** The line by which the service confirms that the export is complete, at the end of a text. */
const lastLineOf = (tail: string): string | undefined =>
  /\n(\{"kind":"end",[^\n]*\})\n$/.exec(tail)?.[1]

/** Writes an export to standard output; returns its last line if the service has sent all of it. */
const writeExport = async (stream: ReadableStream<Uint8Array>): Promise<string | undefined> => {
  let tail = ""
  for await (const chunk of stream) {
    tail = (tail + Buffer.from(chunk).toString("latin1")).slice(-lastLineChars)
    if (!process.stdout.write(chunk)) await once(process.stdout, "drain")
  }
  return lastLineOf(tail)
}

const exportAll = Command.make(
  "export",
  { ...adminFlags, account },
  Effect.fnUntraced(function*({ account, ...flags }) {
    const { name, service } = yield* locateAccount(flags, account)
    const stream = yield* call(service, ({ accounts }) => accounts.export(name))
    const end = yield* call(service, () => writeExport(stream))
    if (end === undefined) {
      return yield* failed(
        `the export of the account ${name} ended early`,
        "delete it, and repeat the command"
      )
    }
    const [, missing] = /"unavailable":(\d+)/.exec(end) ?? []
    if (missing !== undefined) {
      return yield* failed(
        `the export of the account ${name} lacks ${missing} resources that are in quarantine`,
        "its lines of the kind unavailable name them; repeat the command later"
      )
    }
  })
).pipe(
  Command.withDescription("Write everything that an account owns to standard output"),
  Command.withExamples([
    { command: "restante account export bob > bob.ndjson", description: "Into a file" }
  ])
)

/** A scope as the service has it, with the name of a mailbox instead of its URI. */
const scopeOf = Effect.fnUntraced(function*(service: ServiceLocation, scope: string) {
  const [, mailbox] = /^mailbox:(.*)$/.exec(scope) ?? []
  if (mailbox === undefined) return scope
  const { segments: [name = mailbox] } = yield* ownResourceOf(service, mailbox, "mailbox")
  return `mailbox:${name}`
})

const token = Command.make(
  "token",
  {
    ...common,
    label: textFlag("name", "text", "What the token is for"),
    expires: textFlag(
      "expires",
      "time|duration",
      "When it expires: P30D, 2030-01-31T12:00:00Z, or seconds; by default with your token"
    ),
    scope: Flag.String("scope").pipe(
      Flag.withMetavar("admin|send|read|deposit|mailbox:NAME"),
      Flag.withDescription("What the token is for, all rights by default; may be repeated"),
      Flag.atLeast(0)
    )
  },
  Effect.fnUntraced(function*({ account, expires, json, label, scope, ...flags }) {
    const { name, service } = yield* locateAccount(flags, account)
    const scopes = yield* Effect.forEach(scope, (one) => scopeOf(service, one))
    const options = {
      name: Option.getOrUndefined(label),
      expires: Option.getOrUndefined(expires),
      scope: scopes.length === 0 ? undefined : scopes.join(" ")
    }
    const token = yield* call(service, ({ accounts }) => accounts.createToken(name, options))
    yield* printToken(name, token, json)
  })
).pipe(Command.withDescription("Create another token of an account and print it"))

const tokens = Command.make(
  "tokens",
  common,
  Effect.fnUntraced(function*({ account, json, ...flags }) {
    const { name, service } = yield* locateAccount(flags, account)
    const tokens = yield* call(service, ({ accounts }) => accounts.tokens(name))
    if (json) return yield* printJson(tokens)
    const rows = tokens.map((token) => {
      const { created, expires = "never", id, name: label = "", scope = "all" } = token
      return [id, created, expires, token.used ?? "never", scope, plain(label)]
    })
    const heads = ["ID", "CREATED", "EXPIRES", "LAST-USED", "SCOPE", "NAME"]
    yield* Console.log(table([heads, ...rows]))
  })
).pipe(Command.withDescription("List the tokens of an account, without their text"))

/** The id of a token of an account, from the id or the URI of the token. */
const tokenIdOf = Effect.fnUntraced(function*(
  service: ServiceLocation,
  account: string,
  text: string
) {
  if (/^[\w=-]+$/.test(text)) return text
  const { segments: [owner, id] } = yield* ownResourceOf(service, text, "token")
  return owner === account && id !== undefined ? id : yield* wrongUsage(
    `${plain(text)} is no token of ${account}`,
    `name the account ${plain(owner ?? "")}, or another token`
  )
})

const revoke = Command.make(
  "revoke",
  {
    ...common,
    id: textArgument("token", "Id or URI of the token, as tokens lists it").pipe(Argument.optional),
    all: switchFlag("all", "All tokens of the account")
  },
  Effect.fnUntraced(function*({ account, all, id, json, ...flags }) {
    if (Option.isNone(id) !== all) {
      return yield* wrongUsage(
        all
          ? `both a token and --all tokens of ${account} are named`
          : `no token of ${account} is named`,
        "give either one token or --all"
      )
    }
    const { name, service } = yield* locateAccount(flags, account)
    const token = Option.isNone(id) ? undefined : yield* tokenIdOf(service, name, id.value)
    const revoked = token === undefined ? "all" : { id: token }
    yield* call(service, ({ accounts }) => accounts.revoke(name, revoked))
    const message = all ? `All tokens of ${name} are revoked.` : `A token of ${name} is revoked.`
    yield* printOutcome(json, { account: name, revoked: token ?? "all" }, message)
  })
).pipe(Command.withDescription("Revoke one token of an account, or all"))

export const accountCommand = Command.make("account").pipe(
  Command.withDescription("Manage the accounts of a running service"),
  Command.withSubcommands([add, list, exportAll, remove, token, tokens, revoke])
)
