/**
 * The file of contexts: named services, with the account and the token for each. It is in the
 * user's folder of configuration, and for its owner alone, since it may have tokens.
 */
import { Effect, Option, Schema } from "effect"
import { randomBytes } from "node:crypto"
import { type FileHandle, mkdir, open, rename, rm, stat } from "node:fs/promises"
import { homedir } from "node:os"
import { dirname, isAbsolute, join } from "node:path"
import { CommandFailed, exitCodes, failed, reasonOf } from "../../command-failure.ts"
import { contextsBytesMax } from "../../limits.ts"

const Context = Schema.Struct({
  /** The origin of the service. */
  url: Schema.String,
  /** The account of the token; without it, the token alone names its account. */
  account: Schema.optionalKey(Schema.String),
  /** The token itself. */
  token: Schema.optionalKey(Schema.String),
  /** The absolute path of a file with the token. */
  tokenFile: Schema.optionalKey(Schema.String)
})

const ContextList = Schema.Struct({
  /** The context of commands that name no other. */
  current: Schema.optionalKey(Schema.String),
  contexts: Schema.Record(Schema.String, Context)
})

/** A named service, with an account and where its token is. */
export type Context = typeof Context.Type

/** All contexts of a user, by name, and which one is current. */
export type ContextList = typeof ContextList.Type

const decodeList = Schema.decodeUnknownOption(Schema.fromJsonString(ContextList))

const configurationFolder = (): string | undefined => {
  const folder = process.env["XDG_CONFIG_HOME"]
  // The XDG Base Directory Specification says to ignore a relative path.
  if (folder !== undefined && isAbsolute(folder)) return folder
  try {
    return join(homedir(), ".config")
  } catch {
    // A user without HOME and without an entry in the list of users, as in a container.
    return undefined
  }
}

/** The path of the file of contexts; undefined for a user without a home. */
const pathOfContexts = (): string | undefined => {
  const folder = configurationFolder()
  return folder === undefined ? undefined : join(folder, "restante", "contexts.json")
}

const unusable = (problem: string, advice: string): CommandFailed =>
  failed(problem, advice, exitCodes.configuration)

const isMissing = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ENOENT"

const modeText = (mode: number): string => (mode & 0o777).toString(8)

/** Systems without permissions of this kind report the same mode for every file. */
const hasModes = process.platform !== "win32"

/** Throws for a file that others may read, or a folder in which others may replace it. */
const assertPrivate = async (path: string, file: FileHandle): Promise<void> => {
  if (!hasModes) return
  const { mode } = await file.stat()
  if ((mode & 0o077) !== 0) {
    throw unusable(
      `the contexts are not read: ${path} has mode ${modeText(mode)}, and others could use its ` +
        "tokens",
      `chmod 600 ${path}`
    )
  }
  const folder = dirname(path)
  const { mode: folderMode } = await stat(folder)
  if ((folderMode & 0o022) !== 0) {
    throw unusable(
      `the contexts are not read: ${folder} has mode ${modeText(folderMode)}, and others could ` +
        "replace the file in it",
      `chmod 700 ${folder}`
    )
  }
}

const textOf = async (path: string): Promise<string> => {
  const file = await open(path)
  try {
    await assertPrivate(path, file)
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(contextsBytesMax + 1) })
    if (bytesRead <= contextsBytesMax) return buffer.toString("utf8", 0, bytesRead)
    throw unusable(
      `the contexts are not read: ${path} has more than ${contextsBytesMax} bytes`,
      "shorten it"
    )
  } finally {
    await file.close()
  }
}

const read = async (path: string): Promise<ContextList> => {
  let text: string
  try {
    text = await textOf(path)
  } catch (error) {
    if (isMissing(error)) return { contexts: {} }
    throw error
  }
  // The error of the decoder would show parts of tokens.
  return Option.getOrThrowWith(decodeList(text), () =>
    unusable(
      `the contexts are not read: ${path} is no list of contexts`,
      "correct it, or remove it and repeat `restante context add`"
    ))
}

const failureFor = (what: string, path: string) => (error: unknown): CommandFailed =>
  error instanceof CommandFailed
    ? error
    : unusable(
      `the contexts are not ${what}: ${reasonOf(error)}`,
      `correct the owner and the mode of ${path}, or set XDG_CONFIG_HOME to another folder`
    )

/** All contexts of the user; none without a file. Fails with exit code 78 for an unusable file. */
export const readContexts: Effect.Effect<ContextList, CommandFailed> = Effect.suspend(() => {
  const path = pathOfContexts()
  if (path === undefined) return Effect.succeed({ contexts: {} })
  return Effect.tryPromise({ try: () => read(path), catch: failureFor("read", path) })
})

/** Replaces the file as a whole, so that no reader finds half of it. */
const write = async (path: string, text: string): Promise<void> => {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.${randomBytes(6).toString("hex")}`
  try {
    const file = await open(draft, "wx", 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

/**
 * Stores the contexts, and returns the path of their file. Makes the file with mode 0600, and its
 * folder with mode 0700. Fails with exit code 78 when it cannot be written.
 */
export const writeContexts = Effect.fnUntraced(function*(
  list: ContextList
): Effect.fn.Return<string, CommandFailed> {
  const path = pathOfContexts()
  if (path === undefined) {
    return yield* unusable(
      "the contexts are not written: this user has no home folder",
      "set XDG_CONFIG_HOME"
    )
  }
  const text = `${JSON.stringify(list, null, 2)}\n`
  if (Buffer.byteLength(text) > contextsBytesMax) {
    return yield* unusable(
      `the contexts are not written: ${path} would have more than ${contextsBytesMax} bytes`,
      "remove contexts that you no longer need (restante context remove)"
    )
  }
  yield* Effect.tryPromise({ try: () => write(path, text), catch: failureFor("written", path) })
  return path
})

/** The context of a name; fails with exit code 78 when there is none. */
export const contextNamed = (
  { contexts }: ContextList,
  name: string
): Effect.Effect<Context, CommandFailed> => {
  const context = Object.hasOwn(contexts, name) ? contexts[name] : undefined
  if (context !== undefined) return Effect.succeed(context)
  const names = Object.keys(contexts).toSorted()
  const known = names.length === 0 ? "there is none yet" : `there are ${names.join(", ")}`
  return Effect.fail(unusable(
    `the context ${name} does not exist: ${known}`,
    "name one of them, or add it (restante context add)"
  ))
}
