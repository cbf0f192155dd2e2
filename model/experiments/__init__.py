"""A changed model or input beside the unchanged one."""
