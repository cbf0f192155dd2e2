import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    root: "../..",
    include: ["tests/**/*.test.js"],
    globals: true, // Tests stand beside those of Python, out of reach of these packages.
    setupFiles: ["tests/viz/english.js"],
    coverage: { include: ["viz/**/*.js"], exclude: ["viz/web/dist", "viz/web/*.js"], reportsDirectory: "build/coverage/vitest" },
  },
});
