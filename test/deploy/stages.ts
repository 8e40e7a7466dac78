/**
 * Builds the Dockerfile without Docker: its COPY and RUN instructions fill a folder for each stage,
 * in a changed root. It supports only what our file uses, and fails for other instructions.
 */
import { cpSync, mkdirSync, statSync } from "node:fs"
import { basename, join } from "node:path"
import { baseEnvironment } from "./base.ts"
import { dockerfile, type Instruction, root, textOf } from "./sources.ts"
import { must, ownMounts } from "./tools.ts"

/** A stage after its build. */
export interface Stage {
  readonly folder: string
  readonly environment: Record<string, string>
  workdir: string
}

/** Instructions for running the image, which change no file. */
const runInstructions = [
  "ARG",
  "VOLUME",
  "EXPOSE",
  "USER",
  "STOPSIGNAL",
  "HEALTHCHECK",
  "ENTRYPOINT",
  "CMD"
]

const ignored = textOf(".dockerignore").split("\n")
  .filter((line) => line !== "" && !/^[#!*]/.test(line))

const isSent = (path: string): boolean => {
  const own = path.slice(root.length)
  const name = basename(path)
  return !ignored.includes(own) && name !== "node_modules" && !name.endsWith(".tsbuildinfo")
}

const copy = async (stages: ReadonlyMap<string, Stage>, stage: Stage, rest: string) => {
  const words = rest.split(" ")
  const from = /^--from=(.*)$/.exec(words[0] ?? "")?.[1]
  const sources = words.slice(from === undefined ? 0 : 1, -1)
  const target = join(stage.folder, stage.workdir, words.at(-1) ?? "")
  const context = from === undefined ? root : stages.get(from)?.folder
  if (context === undefined) throw new Error(`no stage ${from}`)
  for (const source of sources) {
    const path = join(context, source)
    const into = statSync(path).isDirectory() && sources.length === 1
      ? target
      : rest.endsWith("/")
      ? join(target, basename(source))
      : target
    // Stages share files by hard links, as no file is ever modified in place.
    if (from !== undefined) await link(path, into)
    else cpSync(path, into, { recursive: true, filter: isSent })
  }
}

const link = (from: string, to: string): Promise<unknown> => must("cp", ["-al", from, to])

/** Runs within its own mounts, as some programs read `/proc`. */
const changedRoot = "mount -t proc proc \"$1/proc\" && exec chroot \"$1\" /bin/sh -c \"$2\""

const execute = (stage: Stage, command: string): Promise<unknown> => {
  const script = `cd ${stage.workdir} && ${command}`
  const args = [...ownMounts(), "sh", "-c", changedRoot, "stage"]
  return must("unshare", [...args, stage.folder, script], stage.environment)
}

const apply = async (
  stages: ReadonlyMap<string, Stage>,
  stage: Stage,
  { name, rest }: Instruction
): Promise<void> => {
  if (name === "COPY") await copy(stages, stage, rest)
  else if (name === "RUN") await execute(stage, rest)
  else if (name === "WORKDIR") {
    stage.workdir = rest
    mkdirSync(join(stage.folder, rest), { recursive: true })
  } else if (name === "ENV") {
    for (const pair of rest.split(" ")) {
      const [variable = "", value = ""] = pair.split("=")
      stage.environment[variable] = value
    }
  } else if (!runInstructions.includes(name)) throw new Error(`${name} is not known here`)
}

/** Builds every stage below `folder` on `base`; returns the last one. */
export const buildStages = async (
  base: string,
  folder: string,
  buildArguments: Readonly<Record<string, string>>
): Promise<Stage> => {
  const stages = new Map<string, Stage>()
  let stage: Stage | undefined
  for (const instruction of dockerfile()) {
    if (instruction.name === "FROM") {
      const [from = "", , name = "last"] = instruction.rest.split(" ")
      const under = stages.get(from)
      if (under === undefined && from !== "${BASE_IMAGE}") throw new Error(`no stage ${from}`)
      const path = join(folder, name)
      await link(under?.folder ?? base, path)
      stage = {
        folder: path,
        environment: {
          PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
          HOME: "/root",
          ...baseEnvironment,
          ...buildArguments
        },
        workdir: under?.workdir ?? "/"
      }
      stages.set(name, stage)
    } else if (stage !== undefined) await apply(stages, stage, instruction)
  }
  if (stage === undefined) throw new Error("the Dockerfile has no stage")
  // Build arguments do not exist when the image runs.
  for (const name of Object.keys(buildArguments)) delete stage.environment[name]
  return stage
}
