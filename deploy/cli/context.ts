/** `restante context …`: named services, so that commands need neither flags nor variables. */
import { Console, Effect, Option, Redacted } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { stat } from "node:fs/promises"
import { resolve } from "node:path"
import { type CommandFailed, failed } from "../command-failure.ts"
import { askSecret, isTerminal, readSecret } from "../secret-input.ts"
import { allSettings } from "../settings/index.ts"
import { checkedToken, type Context, type ContextList, contextNamed, ownAccountOf, readContexts,
  resolveService, tokenOfEnvironment, writeContexts, wrongUsage } from "./service/index.ts"
import { accountFlag, accountFlags, jsonFlag, secretFileFlag, Slug, switchFlag,
  textArgument } from "./flags.ts"
import { jsonText, plain, printJson, printLine, printOutcome, table } from "./terminal.ts"

const name = textArgument("name", "Name of the context").pipe(Argument.withSchema(Slug))

const originKind = allSettings.find(({ key }) => key === "baseUrl")?.kind

/** The origin of a service, written as BASE_URL is. */
const originOf = (text: string): Effect.Effect<string, CommandFailed> => {
  const origin = originKind?.parse(text)
  return typeof origin === "string"
    ? Effect.succeed(origin)
    : Effect.fail(wrongUsage(
      `--url is ${JSON.stringify(text)}, which is no address of a service`,
      `give ${originKind?.expected ?? ""}`
    ))
}

type TokenPlace = Pick<Context, "token" | "tokenFile">

const isFile = (path: string): Promise<boolean> =>
  stat(path).then((found) => found.isFile(), () => false)

/** The token of a file is read from there by each command; that of a pipe is stored. */
const placeOfFile = Effect.fnUntraced(function*(
  file: string,
  question: string
): Effect.fn.Return<TokenPlace, CommandFailed> {
  const token = yield* readSecret(file, question)
  const path = resolve(file)
  return file !== "-" && (yield* Effect.promise(() => isFile(path)))
    ? { tokenFile: path }
    : { token: Redacted.value(token) }
})

/** Where the token of a new context is: a file, or the context itself. */
const placeOfToken = Effect.fnUntraced(function*(
  tokenFile: Option.Option<string>,
  question: string
): Effect.fn.Return<TokenPlace, CommandFailed> {
  if (Option.isSome(tokenFile)) return yield* placeOfFile(tokenFile.value, question)
  const own = yield* tokenOfEnvironment
  if (own !== undefined) return { token: Redacted.value(own) }
  if (!isTerminal()) return {}
  const typed = yield* askSecret(`${question} (Enter: none)`)
  return typed === "" ? {} : { token: Redacted.value(yield* checkedToken(typed, "the terminal")) }
})

const aboutToken = ({ token, tokenFile }: Context): string =>
  tokenFile ?? (token === undefined ? "none" : "stored")

/** A context for programs, without its token. */
const documentOf = (name: string, context: Context, { current }: ContextList) => ({
  name,
  url: context.url,
  account: context.account ?? null,
  token: context.tokenFile === undefined ? context.token && "stored" : "file",
  tokenFile: context.tokenFile ?? null,
  current: name === current
})

const add = Command.make(
  "add",
  {
    name,
    url: Flag.String("url").pipe(
      Flag.withMetavar("url"),
      Flag.withDescription("Where the service is, such as https://post.example.org")
    ),
    account: accountFlag.pipe(Flag.withDescription("The account of the token")),
    "token-file": secretFileFlag(
      "token-file",
      "File of the token, which stays there; without it RESTANTE_TOKEN is stored"
    ),
    replace: switchFlag("replace", "Replace the context of this name"),
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ account, json, name, replace, "token-file": tokenFile, url }) {
    const origin = yield* originOf(url)
    const list = yield* readContexts
    if (Object.hasOwn(list.contexts, name) && !replace) {
      return yield* failed(
        `the context ${name} exists already`,
        "choose another name, or replace it with --replace"
      )
    }
    const given = Option.isNone(account)
      ? undefined
      : { value: account.value, from: "flag --account" }
    const ofToken = yield* ownAccountOf({ baseUrl: origin }, given)
    const place = yield* placeOfToken(tokenFile, `Token for ${origin}`)
    const named = ofToken === undefined ? {} : { account: ofToken }
    const context: Context = { url: origin, ...named, ...place }
    // The first context is current at once: nothing else could be meant.
    const current = list.current ?? name
    const changed = { current, contexts: { ...list.contexts, [name]: context } }
    const path = yield* writeContexts(changed)
    const use = current === name
      ? "Commands use it."
      : `Commands use ${current}: change that with restante context use ${name}.`
    const message = `The context ${name} is in ${path}; its token: ${aboutToken(context)}. ${use}`
    yield* printOutcome(json, documentOf(name, context, changed), message)
  })
).pipe(
  Command.withDescription("Store a service, an account and its token under a name"),
  Command.withExamples([
    {
      command: "restante context add post --url https://post.example.org --token-file token",
      description: "With the token in a file"
    }
  ])
)

const use = Command.make(
  "use",
  { name, json: jsonFlag() },
  Effect.fnUntraced(function*({ json, name }) {
    const list = yield* readContexts
    const context = yield* contextNamed(list, name)
    const changed = { ...list, current: name }
    yield* writeContexts(changed)
    const message = `Commands use the context ${name}: ${plain(context.url)}.`
    yield* printOutcome(json, documentOf(name, context, changed), message)
  })
).pipe(Command.withDescription("Select the context of all commands that name none"))

const list = Command.make(
  "list",
  { json: jsonFlag("One JSON object a line") },
  Effect.fnUntraced(function*({ json }) {
    const all = yield* readContexts
    const entries = Object.entries(all.contexts).toSorted(([a], [b]) => a < b ? -1 : 1)
    if (json) {
      for (const [name, context] of entries) {
        printLine(jsonText(documentOf(name, context, all)))
      }
      return
    }
    const rows = entries.map(([name, context]) => {
      const { account = "-", url } = context
      return [name === all.current ? "*" : "", name, url, account, aboutToken(context)].map(plain)
    })
    yield* Console.log(table([["", "NAME", "URL", "ACCOUNT", "TOKEN"], ...rows]))
  })
).pipe(Command.withDescription("List the contexts, without their tokens; * is the current one"))

const remove = Command.make(
  "remove",
  { name, json: jsonFlag() },
  Effect.fnUntraced(function*({ json, name }) {
    const all = yield* readContexts
    yield* contextNamed(all, name)
    const { [name]: _, ...others } = all.contexts
    const { current, ...rest } = all
    // As `nats context rm`: otherwise the next command would call some other service.
    if (current === name && Object.keys(others).length > 0) {
      return yield* failed(
        `the context ${name} is not removed, as it is the current one`,
        "select another one first (restante context use)"
      )
    }
    const kept = current === undefined || current === name ? {} : { current }
    yield* writeContexts({ ...rest, ...kept, contexts: others })
    yield* printOutcome(json, { name, removed: true }, `The context ${name} is removed.`)
  })
).pipe(Command.withDescription("Remove a context; a file with its token stays"))

const show = Command.make(
  "show",
  { ...accountFlags, json: jsonFlag() },
  Effect.fnUntraced(function*({ json, ...flags }) {
    const { account, baseUrl, context, token } = yield* resolveService(flags, "account")
    const ofToken = yield* ownAccountOf({ baseUrl: baseUrl.value }, account)
    const rows = [
      { name: "context", value: context?.name ?? null, from: context?.selection ?? null },
      { name: "url", value: baseUrl.value, from: baseUrl.from },
      { name: "account", value: ofToken ?? null, from: account?.from ?? null },
      { name: "token", value: token === undefined ? null : "<set>", from: token?.from ?? null }
    ]
    if (json) return yield* printJson(rows)
    const cells = rows.map(({ from, name, value }) => [name, value ?? "-", from ?? "-"].map(plain))
    yield* Console.log(table([["", "VALUE", "FROM"], ...cells]))
  })
).pipe(
  Command.withDescription("Show the service, the account and the token of the other commands")
)

export const contextCommand = Command.make("context").pipe(
  Command.withDescription("Name services, so that commands need neither flags nor variables"),
  Command.withSubcommands([add, use, list, remove, show])
)
