/** `restante account …`: the accounts of a running service. */
import { Console, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { exitCodes } from "../command-failure.ts"
import * as accounts from "./service/accounts.ts"
import { failed } from "./service/index.ts"
import { adminFlags, asAdmin, jsonFlag, plain, printJson, table } from "./terminal.ts"

const Slug = Schema.String.pipe(Schema.check(
  Schema.isPattern(/^[a-z0-9][a-z0-9-]{0,63}$/, {
    message: "Expected 1 to 64 of a-z, 0-9 and -, not beginning with -"
  })
))

const name = Argument.String("name").pipe(
  Argument.withDescription("Name of the account"),
  Argument.withSchema(Slug)
)

const role = Flag.Literals("role", ["admin", "quotes", "customers"]).pipe(
  Flag.withDescription("A role of the account; may be repeated"),
  Flag.atLeast(0)
)

/** The token alone goes to standard output, for scripts. */
const showToken = Effect.fnUntraced(function*(account: string, token: string, json: boolean) {
  if (json) return yield* printJson({ account, token })
  yield* Console.error(`Token of ${account}, shown only this once:`)
  yield* Console.log(token)
})

const add = Command.make(
  "add",
  { ...adminFlags, name, role, json: jsonFlag() },
  Effect.fnUntraced(function*({ json, name, role, ...flags }) {
    yield* showToken(name, yield* accounts.addAccount(yield* asAdmin(flags), name, role), json)
  })
).pipe(Command.withDescription("Make an account and print its token"))

const list = Command.make(
  "list",
  { ...adminFlags, json: jsonFlag("One JSON object a line") },
  Effect.fnUntraced(function*({ json, ...flags }) {
    yield* accounts.listAccounts(
      yield* asAdmin(flags),
      ({ name, role = [] }) =>
        Console.log(json ? JSON.stringify({ name, role }) : `${name}\t${role.join(",")}`.trimEnd())
    )
  })
).pipe(Command.withDescription("List the accounts and their roles"))

const remove = Command.make(
  "remove",
  { ...adminFlags, name, json: jsonFlag() },
  Effect.fnUntraced(function*({ json, name, ...flags }) {
    yield* accounts.removeAccount(yield* asAdmin(flags), name)
    yield* json ? printJson({ removed: name }) : Console.error(`Account ${name} is removed.`)
  })
).pipe(Command.withDescription("Remove an account"))

const token = Command.make(
  "token",
  {
    ...adminFlags,
    name,
    label: Flag.String("name").pipe(
      Flag.withDescription("What the token is for"),
      Flag.optional
    ),
    expires: Flag.String("expires").pipe(
      Flag.withMetavar("time|duration"),
      Flag.withDescription(
        "When it ends: P30D, 2030-01-31T12:00:00Z, or seconds; never unless said"
      ),
      Flag.optional
    ),
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ expires, json, label, name, ...flags }) {
    const wish = { name: Option.getOrUndefined(label), expires: Option.getOrUndefined(expires) }
    yield* showToken(name, yield* accounts.addToken(yield* asAdmin(flags), name, wish), json)
  })
).pipe(Command.withDescription("Give an account another token and print it"))

const tokens = Command.make(
  "tokens",
  {
    ...adminFlags,
    name,
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ json, name, ...flags }) {
    const all = yield* accounts.listTokens(yield* asAdmin(flags), name)
    if (json) return yield* printJson(all)
    const rows = all.map((
      one
    ) => [one.id, one.created, one.expires ?? "never", plain(one.name ?? "")])
    yield* Console.log(table([["ID", "CREATED", "EXPIRES", "NAME"], ...rows]))
  })
).pipe(Command.withDescription("List an account's tokens, without themselves"))

const revoke = Command.make(
  "revoke",
  {
    ...adminFlags,
    name,
    id: Argument.String("token").pipe(
      Argument.withDescription("Id of the token, as tokens lists it"),
      Argument.optional
    ),
    all: Flag.Boolean("all").pipe(
      Flag.withDescription("All of them instead"),
      Flag.withDefault(false)
    ),
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ all, id, json, name, ...flags }) {
    const one = Option.getOrUndefined(id)
    if ((one === undefined) !== all) {
      return yield* failed("name one token, or say --all", exitCodes.usage)
    }
    yield* accounts.revokeTokens(yield* asAdmin(flags), name, one)
    if (json) return yield* printJson({ account: name, revoked: one ?? "all" })
    yield* Console.error(
      one === undefined ? `All tokens of ${name} are revoked.` : `A token of ${name} is revoked.`
    )
  })
).pipe(Command.withDescription("Revoke a token of an account, or all"))

export const accountCommand = Command.make("account").pipe(
  Command.withDescription("Manage the accounts of a running service"),
  Command.withSubcommands([add, list, remove, token, tokens, revoke])
)
