/** Attempts that a registration or an outgoing notification has recorded, as text. */
import { Console, Effect } from "effect"
import type { RecordedAttempt, RecordedHeader } from "../../../client/index.ts"
import { jsonText, plain } from "../terminal.ts"

const headerLines = (sign: string, headers: ReadonlyArray<RecordedHeader>) =>
  headers.map(([name, value]) => `  ${sign} ${plain(`${name}: ${value}`)}`)

/** The problem, unless it has no more than the code, which is shown beside it. */
export const problemBeside = (
  { code, problem }: Pick<RecordedAttempt, "code" | "problem">
): string | undefined => code !== undefined && problem === `answered ${code}` ? undefined : problem

/** The result, the duration and the redirects. */
const resultOf = ({ code, durationMs, problem, redirects }: RecordedAttempt): string =>
  [
    code ?? "no answer",
    problemBeside({ code, problem }) ?? [],
    durationMs === undefined ? [] : `${durationMs} ms`,
    redirects === 0 ? [] : `after ${redirects} ${redirects === 1 ? "redirect" : "redirects"}`
  ].flat().join(", ")

/** An attempt: its result, what was sent (`>`), what was answered (`<`), and the body (`|`). */
const attemptLines = (attempt: RecordedAttempt, label: string): ReadonlyArray<string> => {
  const { answer, at, code, follows, next, requestHeaders } = attempt
  const then = follows === "done" ? "" : `; next: ${next ?? "none"} (${follows})`
  // Without headers of a request nothing was sent, or it is not kept.
  const isHidden = code !== undefined && answer === undefined && requestHeaders.length > 0
  return [
    plain(`${at} ${label}: ${resultOf(attempt)}${then}`),
    ...headerLines(">", requestHeaders),
    ...isHidden ? ["  The answer is not shown: its address is not public."] : [],
    ...headerLines("<", answer?.headers ?? []),
    ...(answer?.text ?? "").split("\n").flatMap((line) =>
      line.trim() === "" ? [] : [`  | ${plain(line)}`]
    )
  ]
}

/** Prints attempts, one object a line as JSON; `labelOf` names what was attempted. */
export const printAttempts = <Attempt extends RecordedAttempt>(
  attempts: ReadonlyArray<Attempt>,
  json: boolean,
  labelOf: (attempt: Attempt) => string
): Effect.Effect<void> =>
  Effect.gen(function*() {
    if (json) {
      for (const attempt of attempts) yield* Console.log(jsonText(attempt))
    } else if (attempts.length === 0) yield* Console.error("There was no attempt yet.")
    else {
      const lines = attempts.flatMap((attempt) => attemptLines(attempt, labelOf(attempt)))
      yield* Console.log(lines.join("\n"))
    }
  })
