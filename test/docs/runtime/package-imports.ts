/** Code of this repository as a program has it that has installed the package. */
export const codeOf = (text: string): string =>
  text.replace(
    /"(?:\.\.\/)+runtime\/(main|testing\/index)\.ts"/g,
    (_, entry: string) => `"@restante/runtime${entry === "main" ? "" : "/testing"}"`
  )
