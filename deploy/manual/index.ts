/** The manual page restante(1), of the same table of commands and flags as `--help`. */
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
  `.PP\n${escaped(description)}\n.PP\n.RS\n.nf\n${escaped(command)}\n.fi\n.RE\n`

/** The part of the page about one command. */
const commandPart = ({ args = [], description, examples = [], flags, usage }: Doc): string =>
  [
    `.SS ${escaped(usage.replace(/ (<subcommand>|\[flags\]).*$/, ""))}\n`,
    `${escaped(description)}.\n.PP\n${bold(usage)}\n`,
    ...args.map(argumentItem),
    ...flags.map(flagItem),
    ...examples.map(exampleText)
  ].join("")

const exitTexts: Readonly<Record<keyof typeof exitCodes, string>> = {
  ok: "The command has succeeded.",
  failed: "The command has failed, or has found problems.",
  usage: "The command line is wrong.",
  corrupted: "The store is corrupted.",
  unavailable: "Temporary: another process uses the store, or the service does not respond.",
  configuration: "A setting is wrong, or the platform is not supported."
}

const isExit = (name: string): name is keyof typeof exitCodes => Object.hasOwn(exitCodes, name)

/** The text of the page, in the macros of man(7). */
export const manualPage = async (): Promise<string> => {
  const [root, ...commands] = await helpsOf([])
  if (root === undefined) throw new Error("the command line has no help")
  return [
    `.TH RESTANTE 1 "" "restante ${version}"\n.ad l\n.nh\n`,
    `.SH NAME\nrestante \\- ${escaped(root.description)}\n`,
    `.SH SYNOPSIS\n${bold("restante")} \\fIcommand\\fR [\\fIflags\\fR]\n`,
    `.SH OPTIONS\n`,
    ...(root.globalFlags ?? []).map(flagItem),
    `.SH COMMANDS\n`,
    ...commands.map(commandPart),
    `.SH EXIT STATUS\n`,
    ...Object.keys(exitTexts).filter(isExit)
      .map((name) => item(bold(String(exitCodes[name])), exitTexts[name])),
    `.SH ENVIRONMENT\nEach setting is a variable: ${bold("restante config")} shows all of them.\n`
  ].join("")
}
