/** The manual pages restante(1), restante-send(1) and so on, of the same table as `--help`. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Option } from "effect"
import { CliConfig, CliOutput, Command, GlobalFlag, type HelpDoc } from "effect/cli"
import { restante } from "../cli/index.ts"
import { exitCodes } from "../command-failure.ts"
import { version } from "../version.ts"

type Doc = HelpDoc.HelpDoc

/** The help of the command at this path, such as `account add`. */
const helpOf = async (path: ReadonlyArray<string>): Promise<Doc> => {
  let found: Doc | undefined
  const presenter: CliOutput.Presenter = {
    present: (event) =>
      Effect.sync(() => {
        if (event._tag === "Help") found = event.helpDoc
      })
  }
  const environment = Layer.mergeAll(
    NodeServices.layer,
    CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] }),
    CliOutput.layerPresenter(presenter)
  )
  const asked = Command.runWith(restante, { version })([...path, "--help"])
  await Effect.runPromise(Effect.provide(asked, environment))
  if (found === undefined) throw new Error(`restante ${path.join(" ")} has no help`)
  return found
}

/** The help of a command and of all commands below it, in the order of the help. */
const helpsOf = async (path: ReadonlyArray<string>): Promise<ReadonlyArray<Doc>> => {
  const doc = await helpOf(path)
  const below: Array<Doc> = []
  for (const { commands } of doc.subcommands ?? []) {
    for (const { name } of commands) below.push(...await helpsOf([...path, name]))
  }
  return [doc, ...below]
}

const hexDigits = 4

/** Text as roff in ASCII: no line is a request, and a hyphen is the character that users type. */
const escaped = (text: string): string =>
  text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replace(/^(?=[.'])/gm, "\\&")
    .replace(/[^\n -~]/gu, (character) => {
      const code = character.codePointAt(0) ?? 0
      return `\\[u${code.toString(16).toUpperCase().padStart(hexDigits, "0")}]`
    })

const bold = (text: string): string => `\\fB${escaped(text)}\\fR`

const item = (head: string, text: string): string => `.TP\n${head}\n${escaped(text)}\n`

const flagItem = ({ aliases, description, name, type }: HelpDoc.FlagDoc): string => {
  const names = [`--${name}`, ...aliases].map(bold).join(", ")
  const value = type === "boolean" ? "" : ` \\fI${escaped(type)}\\fR`
  return item(names + value, Option.getOrElse(description, () => ""))
}

const argumentItem = ({ description, name }: HelpDoc.ArgDoc): string =>
  item(`\\fI${escaped(name)}\\fR`, Option.getOrElse(description, () => ""))

const exampleText = ({ command, description = "" }: HelpDoc.ExampleDoc): string =>
  `${escaped(description)}\n.PP\n.RS\n.nf\n${escaped(command)}\n.fi\n.RE\n`

/** The words of a command, such as `restante account add`. */
const nameOf = ({ usage }: Doc): string => usage.replace(/ (<subcommand>|\[flags\]).*$/, "")

const itemsOf = ({ args = [], flags }: Doc): ReadonlyArray<string> => [
  ...args.map(argumentItem),
  ...flags.map(flagItem)
]

/** The part of a page about one command. */
const commandPart = (doc: Doc): string =>
  [
    `.SS ${escaped(nameOf(doc))}\n`,
    `${escaped(doc.description)}.\n.PP\n${bold(doc.usage)}\n`,
    ...itemsOf(doc),
    ...(doc.examples ?? []).map((example) => `.PP\n${exampleText(example)}`)
  ].join("")

/** A section of a page, if it has anything. */
const section = (title: string, text: string): string => text === "" ? "" : `.SH ${title}\n${text}`

const exitTexts: Readonly<Record<keyof typeof exitCodes, string>> = {
  ok: "The command has succeeded.",
  failed: "The command has failed, or has found problems.",
  usage: "The command line is wrong.",
  corrupted: "The store is corrupted.",
  unavailable: "Temporary: another process uses the store, or the service does not respond.",
  configuration: "A setting is wrong, or the platform is not supported."
}

const isExit = (name: string): name is keyof typeof exitCodes => Object.hasOwn(exitCodes, name)

/** What every page ends with. */
const ending = (others: ReadonlyArray<string>): string =>
  [
    section(
      "EXIT STATUS",
      Object.keys(exitTexts).filter(isExit)
        .map((name) => item(bold(String(exitCodes[name])), exitTexts[name])).join("")
    ),
    `.SH ENVIRONMENT\nEach setting is a variable: ${bold("restante config")} shows all of them.\n`,
    `.SH SEE ALSO\n${others.map((name) => `${bold(name)}(1)`).join(",\n")}\n`
  ].join("")

const beginning = (name: string, description: string): string =>
  `.TH ${escaped(name.toUpperCase())} 1 "" "restante ${version}"\n.ad l\n.nh\n` +
  `.SH NAME\n${escaped(name)} \\- ${escaped(description)}\n`

const pageName = (doc: Doc): string => nameOf(doc).split(" ").slice(0, 2).join("-")

/** The page of a command, with the commands below it. */
const pageOf = ([first, ...below]: readonly [Doc, ...ReadonlyArray<Doc>]): string =>
  [
    beginning(pageName(first), first.description),
    `.SH SYNOPSIS\n${[first, ...below].map(({ usage }) => bold(usage)).join("\n.br\n")}\n`,
    `.SH DESCRIPTION\n${escaped(first.description)}.\n`,
    section("OPTIONS", itemsOf(first).join("")),
    section("EXAMPLES", (first.examples ?? []).map(exampleText).join(".PP\n")),
    section("COMMANDS", below.map(commandPart).join("")),
    ending(["restante"])
  ].join("")

/** The page of the whole command line. */
const overview = (root: Doc, commands: ReadonlyArray<Doc>, names: ReadonlyArray<string>): string =>
  [
    beginning("restante", root.description),
    `.SH SYNOPSIS\n${bold("restante")} \\fIcommand\\fR [\\fIflags\\fR]\n`,
    section("OPTIONS", (root.globalFlags ?? []).map(flagItem).join("")),
    section("COMMANDS", commands.map(commandPart).join("")),
    ending(names)
  ].join("")

/**
 * The texts of the pages, in the macros of man(7), by the names of their files: `restante.1` has
 * every command, and `restante-outbox.1` has that command with those below it.
 */
export const manualPages = async (): Promise<ReadonlyMap<string, string>> => {
  const [root, ...commands] = await helpsOf([])
  if (root === undefined) throw new Error("the command line has no help")
  const groups = new Map<string, [Doc, ...Array<Doc>]>()
  for (const doc of commands) {
    const group = groups.get(pageName(doc))
    if (group === undefined) groups.set(pageName(doc), [doc])
    else group.push(doc)
  }
  return new Map([
    ["restante.1", overview(root, commands, [...groups.keys()])],
    ...[...groups].map(([name, docs]): [string, string] => [`${name}.1`, pageOf(docs)])
  ])
}
